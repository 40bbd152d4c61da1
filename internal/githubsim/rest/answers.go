package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// MaxBody bounds what a call may send: workflow files and pieces of a log are the largest.
const MaxBody = 4 << 20

// Error is an error with the answer it makes.
type Error struct {
	Status        int
	Message       string
	Problems      []string
	Documentation string      // default: that of the REST API
	Header        http.Header // of the answer
}

func (e *Error) Error() string {
	return strings.Join(append([]string{e.Message}, e.Problems...), "; ")
}

func Problem(status int, format string, args ...any) error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

var ErrNotFound = Problem(http.StatusNotFound, "Not Found")

// Endpoint answers one call: with a body, or nil for 204, or an error.
type Endpoint func(r *http.Request) (*Answer, error)

type Answer struct {
	Status int
	Header http.Header
	Body   any
}

func OK(body any) *Answer      { return &Answer{Status: http.StatusOK, Body: body} }
func Created(body any) *Answer { return &Answer{Status: http.StatusCreated, Body: body} }

// Found leads to another address. It has no body.
func Found(location string) *Answer {
	return &Answer{Status: http.StatusFound, Header: http.Header{"Location": {location}}}
}

// Text is a body that is not JSON.
type Text string

// WriteJSON writes an answer: JSON, unless the body is a Text.
func WriteJSON(w http.ResponseWriter, status int, body any) {
	if text, ok := body.(Text); ok {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, string(text)) // it fails only when the client has gone away
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	// Encoding fails only when the client has gone away, and then the error cannot be reported.
	_ = json.NewEncoder(w).Encode(body)
}

// Decode reads a JSON body strictly when strict is set: the stand-in's own calls take no unknown field, so that a misspelled one
// is not ignored. GitHub's take any.
func Decode(r *http.Request, into any, strict bool) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, MaxBody))
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return Problem(http.StatusBadRequest, "Problems parsing JSON: %v", err)
	}
	return nil
}

func PathID(r *http.Request, name string) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil {
		return 0, ErrNotFound
	}
	return id, nil
}

// Bearer is the secret of an Authorization header, whatever its scheme.
func Bearer(r *http.Request) string {
	_, secret, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found {
		return ""
	}
	return strings.TrimSpace(secret)
}

// The pages that GitHub's refusals point to. Clients tell the secondary limit by the end of its address.
const (
	Documentation          = "https://docs.github.com/rest"
	DocumentationPrimary   = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"
	DocumentationSecondary = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
)

func ETag(link string, body []byte) string {
	sum := sha256.Sum256(append([]byte(link+"\n"), body...))
	return `W/"` + hex.EncodeToString(sum[:]) + `"`
}

// MatchesETag compares weakly, as If-None-Match does (RFC 9110).
func MatchesETag(header, tag string) bool {
	for _, one := range strings.Split(header, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
