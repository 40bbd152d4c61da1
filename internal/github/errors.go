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

// StatusError is an answer that trying again does not change.
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

// Is makes every StatusError an ErrRefused.
func (e *StatusError) Is(target error) bool { return target == lifecycle.ErrRefused }

// hints say what to do about the answers that a wrong set-up gets.
var hints = map[int]string{
	http.StatusUnauthorized: "the token is not valid; check that it has not expired or been revoked",
	http.StatusForbidden:    "the token lacks a permission; it needs administration: write on the repository",
	http.StatusNotFound:     "the repository is unknown, or not visible to the token",
}

// classify turns an error of the client library into one of ours. Nothing of
// the request is kept: its headers hold the token.
func classify(op operation, err error, now time.Time) error {
	var (
		primary     *api.RateLimitError
		secondary   *api.AbuseRateLimitError
		answer      *api.ErrorResponse
		credentials *credentialsError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &primary):
		wait := max(primary.Rate.Reset.Sub(now), time.Second)
		return unavailable(op, wait, errors.New("GitHub's rate limit is used up"))
	case errors.As(err, &secondary):
		wait := limitedFor
		if secondary.RetryAfter != nil {
			wait = max(*secondary.RetryAfter, time.Second)
		}
		return unavailable(op, wait, errors.New("GitHub's secondary rate limit was hit"))
	case errors.As(err, &answer):
		return classifyAnswer(op, answer, now)
	case errors.As(err, &credentials), errors.As(err, &certificate):
		return fmt.Errorf("%s: %w", op, err)
	case malformed(err):
		return unavailable(op, 0, fmt.Errorf("the answer is not GitHub's: %w", err))
	}
	return unavailable(op, 0, err)
}

func classifyAnswer(op operation, answer *api.ErrorResponse, now time.Time) error {
	status, header := answer.Response.StatusCode, answer.Response.Header
	refusal := &StatusError{Status: status, Message: oneLine(answer.Message), Hint: hints[status]}
	wait := retryAfter(header, now)
	switch {
	case status == http.StatusTooManyRequests:
		refusal.Hint = "too many requests"
		if wait == 0 {
			wait = limitedFor
		}
		return unavailable(op, wait, refusal)
	case status == http.StatusForbidden && header.Get("Retry-After") != "":
		refusal.Hint = "too many requests"
		return unavailable(op, max(wait, time.Second), refusal)
	case status >= 500, status == http.StatusRequestTimeout:
		return unavailable(op, wait, refusal)
	}
	return fmt.Errorf("%s: %w", op, refusal)
}

func unavailable(op operation, wait time.Duration, err error) error {
	return &lifecycle.UnavailableError{What: op.String(), RetryAfter: wait, Err: err}
}

// retryAfter is the wait that an answer asks for, in seconds or until its
// limit is reset; 0 when it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil && s > 0 {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil && at.After(now) {
		return at.Sub(now)
	}
	if h.Get("X-RateLimit-Remaining") != "0" {
		return 0
	}
	if s, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil {
		return max(time.Unix(s, 0).Sub(now), 0)
	}
	return 0
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

// hasStatus reports whether GitHub answered with the status, for good.
func hasStatus(err error, status int) bool {
	var e *StatusError
	return errors.As(err, &e) && e.Status == status && !errors.Is(err, lifecycle.ErrUnavailable)
}
