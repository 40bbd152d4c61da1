package github

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// limitedFor is how long to wait after a rate limit that does not say so:
// "at least one minute" (docs.github.com, best practices for the REST API).
const limitedFor = time.Minute

// StatusError is an answer that says no. Below 500 trying again does not change it.
type StatusError struct {
	// Status is the HTTP status of the answer.
	Status int
	// Message is GitHub's own word, Hint what to do about it.
	Message, Hint string
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("GitHub answered %d", e.Status)
	if e.Message != "" {
		text += fmt.Sprintf(" (%s)", e.Message)
	}
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

// Is makes every permanent StatusError an ErrRefused.
func (e *StatusError) Is(target error) bool {
	return target == lifecycle.ErrRefused && e.Status < http.StatusInternalServerError
}

// hint is what to do about an answer to the operation.
func (o operation) hint(status int) string {
	if status == http.StatusForbidden && o.needs != "" {
		return "the App lacks a permission, or is not the one that made it; it needs " + o.needs
	}
	return hint(status, o.target())
}

// hint says what to do about the answers that a wrong set-up gets.
func hint(status int, at place) string {
	switch {
	case status == http.StatusUnauthorized:
		return "the credentials are not valid; check that the token has not expired or been revoked, or that the App's id and key belong together and the clock is right"
	case status == http.StatusForbidden && at.organization:
		return "the credentials lack a permission; they need self-hosted runners: write on the organization, and actions: read on its repositories"
	case status == http.StatusForbidden:
		return "the credentials lack a permission; they need administration: write and actions: read on the repository"
	case status == http.StatusNotFound && at.organization:
		return "the organization is unknown, or not visible to the credentials"
	case status == http.StatusNotFound:
		return "the repository is unknown, or not visible to the credentials"
	}
	return ""
}

// classify turns an error of the client library into one of ours. Nothing of
// the request is kept: its headers hold the token.
func classify(op operation, err error) error {
	var (
		rest        *restError
		answer      *api.ErrorResponse
		credentials *credentialsError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &credentials):
		return fmt.Errorf("%s: %w", op, credentials)
	case errors.As(err, &rest):
		return unavailable(op, max(rest.wait, time.Second), rest)
	case errors.As(err, &answer):
		return classifyAnswer(op, answer, time.Now())
	case errors.As(err, &certificate):
		return fmt.Errorf("%s: %w; name the authority's file in ca_file", op, err)
	case malformed(err):
		return unavailable(op, 0, fmt.Errorf("the answer is not GitHub's: %w", err))
	}
	return unavailable(op, 0, err)
}

func classifyAnswer(op operation, answer *api.ErrorResponse, now time.Time) error {
	status := answer.Response.StatusCode
	refusal := &StatusError{Status: status, Message: oneLine(answer.Message), Hint: op.hint(status)}
	if status >= http.StatusInternalServerError || status == http.StatusRequestTimeout {
		return unavailable(op, asksToWait(answer.Response.Header, now), refusal)
	}
	return fmt.Errorf("%s: %w", op, refusal)
}

func unavailable(op operation, wait time.Duration, err error) error {
	return &lifecycle.UnavailableError{What: op.String(), RetryAfter: wait, Err: err}
}

// asksToWait is the wait that an answer asks for, in seconds or until a date; 0 when it does not.
func asksToWait(h http.Header, now time.Time) time.Duration {
	asked := h.Get("Retry-After")
	if s, err := strconv.Atoi(asked); err == nil && s > 0 {
		return time.Duration(min(s, int(maxRest/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(asked); err == nil && at.After(now) {
		return min(at.Sub(now), maxRest)
	}
	return 0
}

// untilReset is how long the primary rate limit of an answer lasts; 0 when it does not say.
func untilReset(h http.Header, now time.Time) time.Duration {
	s, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		return 0
	}
	return min(max(time.Unix(s, 0).Sub(now), 0), maxWindow)
}

// malformed reports whether an answer was not the JSON that it should be: what
// stands between us and GitHub may answer in its place.
func malformed(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.ErrUnexpectedEOF)
}

// oneLine keeps a foreign text to one readable line.
func oneLine(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// hasStatus reports whether GitHub answered with the status, permanently.
func hasStatus(err error, status int) bool {
	var e *StatusError
	return errors.As(err, &e) && e.Status == status && !errors.Is(err, lifecycle.ErrUnavailable)
}

// orNotFound makes lifecycle.ErrNotFound of an answer that something is not there.
func orNotFound(op operation, err error) error {
	if hasStatus(err, http.StatusNotFound) {
		return fmt.Errorf("%s: %w", op, lifecycle.ErrNotFound)
	}
	return err
}
