// Package postgrest counts the jobs of a service in a table of a database, by
// an HTTP API as PostgREST's: the rows that a filter leaves are counted by the
// server, which tells their number in a Content-Range header. No row is read
// for that. Where it is configured, jobs whose worker went silent are marked as
// failed, and the keys of those rows alone are read.
package postgrest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

const (
	// callTimeout bounds a request whose caller sets no bound. Counting a large table exactly takes a second.
	callTimeout = 10 * time.Second
	// maxHeaderBytes and maxBodyBytes bound what is read of an answer. There is
	// nothing to read in it but a header.
	maxHeaderBytes = 64 << 10
	maxBodyBytes   = 64 << 10
	maxTokenBytes  = 16 << 10
)

// Options of New. All but TokenFile and Stalled are required.
type Options struct {
	// URL is the API, below which the tables are.
	URL string
	// Queued and Busy are a table with a filter each, such as "jobs?status=eq.queued".
	Queued, Busy string
	// TokenFile holds the bearer token; empty: none is sent.
	TokenFile string
	// Stalled are the rules of FailStalled; nil: it is not called.
	Stalled *Stalled
}

// Queue is the jobs of one service. It is safe for concurrent use.
type Queue struct {
	o      Options
	client *http.Client
	looks  looks
}

// New returns the queue and makes no call.
func New(o Options) *Queue {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = maxHeaderBytes
	o.URL = strings.TrimRight(o.URL, "/")
	return &Queue{o: o, client: &http.Client{
		Transport: transport, Timeout: callTimeout,
		// Another server would be given the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Count counts what waits and what is worked on, in a request each. One that
// cannot be counted does not keep the other: it is nil, and the error says why.
func (q *Queue) Count(ctx context.Context, service string) (model.Backlog, error) {
	token, err := q.token()
	if err != nil {
		return model.Backlog{}, err
	}
	queued, queuedErr := q.rows(ctx, "count queued jobs of service "+service, q.o.Queued, token)
	busy, busyErr := q.rows(ctx, "count running jobs of service "+service, q.o.Busy, token)
	return model.Backlog{Queued: queued, Busy: busy}, errors.Join(queuedErr, busyErr)
}

// token is read at each look, so that it may be replaced.
func (q *Queue) token() (lifecycle.Secret, error) {
	if q.o.TokenFile == "" {
		return "", nil
	}
	return ReadToken(q.o.TokenFile)
}

// ReadToken reads a file with one token. An error names the file and nothing of what is in it.
func ReadToken(path string) (lifecycle.Secret, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the token of the queue: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxTokenBytes+1))
	if err != nil {
		return "", fmt.Errorf("read the token of the queue: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(text) > maxTokenBytes || strings.ContainsAny(token, "\r\n\x00") {
		return "", fmt.Errorf("read the token of the queue: %s does not hold one token in one line: %w", path, lifecycle.ErrRefused)
	}
	return lifecycle.Secret(token), nil
}

// rows counts the rows of a table that a filter leaves.
func (q *Queue) rows(ctx context.Context, what, table string, token lifecycle.Secret) (*int, error) {
	name, _, _ := strings.Cut(table, "?")
	what += " in table " + name
	// HEAD has no rows in its answer; a server that does not know it is asked for one row.
	answer, err := q.ask(ctx, http.MethodHead, what, table, token)
	if err == nil && (answer.StatusCode == http.StatusMethodNotAllowed || answer.StatusCode == http.StatusNotImplemented) {
		answer, err = q.ask(ctx, http.MethodGet, what, table, token)
	}
	if err != nil {
		return nil, err
	}
	return total(what, answer)
}

// newRequest is a request for a table, with the token.
func (q *Queue) newRequest(ctx context.Context, method, what, table string, body io.Reader, token lifecycle.Secret) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, q.o.URL+"/"+table, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: correct the url and the table", what, lifecycle.ErrRefused)
	}
	r.Header.Set("Accept", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token.Reveal())
		r.Header.Set("Apikey", token.Reveal()) // what gateways before PostgREST ask for
	}
	return r, nil
}

// ask asks for a count. The body of the answer has been read.
func (q *Queue) ask(ctx context.Context, method, what, table string, token lifecycle.Secret) (*http.Response, error) {
	r, err := q.newRequest(ctx, method, what, table, nil, token)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Prefer", "count=exact")
	r.Header.Set("Range-Unit", "items")
	r.Header.Set("Range", "0-0")
	answer, err := q.client.Do(r)
	if err != nil {
		return nil, &lifecycle.UnavailableError{What: what, Err: err}
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxBodyBytes) // so that the connection can be used again
	_ = answer.Body.Close()                                // it was only read
	return answer, nil
}

// contentRange is the rows of an answer and how many there are: "0-0/17",
// "*/0", and "0-24/*" where the server did not count.
var contentRange = regexp.MustCompile(`^(?:items )?(?:[0-9]{1,18}-[0-9]{1,18}|\*)/([0-9]{1,15})$`)

// total returns the count in an answer. The status is 206 for some of the rows and 200 for all of them or
// none. Some servers answer 416 for none, since the range is then out of bounds.
func total(what string, answer *http.Response) (*int, error) {
	switch answer.StatusCode {
	case http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
	default:
		return nil, refusal(what, answer.StatusCode)
	}
	header := answer.Header.Values("Content-Range")
	if len(header) != 1 {
		return nil, fmt.Errorf("%s: %w: the answer has %d Content-Range headers; the server must count as PostgREST does", what, lifecycle.ErrRefused, len(header))
	}
	match := contentRange.FindStringSubmatch(header[0])
	if match == nil {
		return nil, fmt.Errorf("%s: %w: Content-Range is %.40q, which tells no total", what, lifecycle.ErrRefused, header[0])
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		return nil, fmt.Errorf("%s: read Content-Range: %w", what, err)
	}
	return &n, nil
}

// refusal is the error of an answer with a status that was not wanted.
func refusal(what string, status int) error {
	switch {
	case status >= 300 && status < 400:
		return fmt.Errorf("%s: %w: the answer is a redirect, which is not followed; write the url that it leads to", what, lifecycle.ErrRefused)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Errorf("%s: %w: status %d; give a token that may read the table", what, lifecycle.ErrRefused, status)
	case status == http.StatusNotFound:
		return fmt.Errorf("%s: %w: correct the url and the table", what, lifecycle.ErrNotFound)
	case status == http.StatusTooManyRequests, status >= 500:
		return &lifecycle.UnavailableError{What: what, Err: fmt.Errorf("status %d", status)}
	}
	return fmt.Errorf("%s: %w: status %d; correct the table and its filter", what, lifecycle.ErrRefused, status)
}
