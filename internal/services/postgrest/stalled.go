package postgrest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

const (
	// stalledPage is how many jobs one call of FailStalled marks at most. Their keys are in the URL of a request, and
	// maxKeyBytes bounds each of them: 50 keys, escaped, are within the 8 KB that proxies take.
	stalledPage = 50
	maxKeyBytes = 100
)

// Stalled says which rows are jobs whose worker went silent, and what is written into them. All fields are required.
type Stalled struct {
	// Column has the time of the last sign of life of a job's worker. A row without a time is not marked.
	Column string
	// After is how old that time must be. It must be at least twice the interval of the looks.
	After time.Duration
	// Key is the column that identifies a row.
	Key string
	// StateColumn gets the value Failed. The filter of busy jobs must no longer match then.
	StateColumn, Failed string
}

// looks are the calls of FailStalled so far.
type looks struct {
	mu sync.Mutex
	// answering is the first of the calls that the table answered since the last that it did not; last is the last one.
	answering, last time.Time
}

// settled notes that the table answered at now, and reports whether it has done so for as long as a worker's two
// heartbeats take. While the API is down no worker can report: the first look after an outage finds all jobs silent.
// The same holds for the first look of a replica, which has not seen what was before.
func (l *looks) settled(now time.Time, gap time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answering.IsZero() || now.Sub(l.last) > gap || now.Before(l.last) {
		l.answering = now
	}
	l.last = now
	return now.Sub(l.answering) >= model.WorkerSilence
}

// failed notes that the table did not answer.
func (l *looks) failed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answering = time.Time{}
}

// FailStalled marks the busy jobs whose worker has shown no sign of life for Stalled.After, at most stalledPage of them
// in one call, and returns their keys. With dry it returns those that it would mark. The update repeats both conditions,
// so a job that reported or ended in between stays as it is. Nothing is marked before the table has answered for a minute.
func (q *Queue) FailStalled(ctx context.Context, service string, now time.Time, dry bool) (keys []string, err error) {
	o := q.o.Stalled
	defer func() {
		if err != nil {
			q.looks.failed()
		}
	}()
	token, err := q.token()
	if err != nil {
		return nil, err
	}
	rows := q.o.Busy
	if strings.Contains(rows, "?") {
		rows += "&"
	} else {
		rows += "?"
	}
	rows += o.Column + "=lt." + now.Add(-o.After).UTC().Format("2006-01-02T15:04:05.000Z")
	found, err := q.keys(ctx, "list stalled jobs of service "+service, http.MethodGet,
		fmt.Sprintf("%s&select=%s&order=%s.asc&limit=%d", rows, o.Key, o.Column, stalledPage), nil, token)
	if err != nil {
		return nil, err
	}
	if settled := q.looks.settled(now, 2*o.After); dry || !settled || len(found) == 0 {
		if dry {
			return found, nil
		}
		return nil, nil
	}
	mark, err := json.Marshal(map[string]string{o.StateColumn: o.Failed})
	if err != nil {
		return nil, fmt.Errorf("write the mark of a stalled job: %w", err)
	}
	return q.keys(ctx, "fail stalled jobs of service "+service, http.MethodPatch,
		fmt.Sprintf("%s&%s=in.%s&select=%s", rows, o.Key, oneOf(found), o.Key), mark, token)
}

// oneOf is a list of values in a filter, escaped for a URL.
func oneOf(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
	}
	return strings.ReplaceAll(url.QueryEscape("("+strings.Join(quoted, ",")+")"), "+", "%20")
}

// keys sends a request and returns the keys of the rows in its answer.
func (q *Queue) keys(ctx context.Context, what, method, table string, body []byte, token lifecycle.Secret) ([]string, error) {
	name, _, _ := strings.Cut(table, "?")
	what += " in table " + name
	r, err := q.newRequest(ctx, method, what, table, bytes.NewReader(body), token)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Prefer", "return=representation")
	}
	answer, err := q.client.Do(r)
	if err != nil {
		return nil, &lifecycle.UnavailableError{What: what, Err: err}
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBodyBytes+1))
	if err != nil {
		return nil, &lifecycle.UnavailableError{What: what, Err: err}
	}
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return nil, fmt.Errorf("%s: %w: status %d; give a token that may read and update the table, or have stalled.after be 0s", what, lifecycle.ErrRefused, status)
	case status == http.StatusBadRequest:
		return nil, fmt.Errorf("%s: %w: status 400; the table must have the columns %s, %s and %s, and the last must take the value %s; else have stalled.after be 0s",
			what, lifecycle.ErrRefused, q.o.Stalled.Column, q.o.Stalled.Key, q.o.Stalled.StateColumn, q.o.Stalled.Failed)
	case status != http.StatusOK && status != http.StatusPartialContent:
		return nil, refusal(what, status)
	}
	return q.decodeKeys(what, text)
}

// decodeKeys reads the keys of rows, each a string or a number. An answer with anything else is refused as a whole.
func (q *Queue) decodeKeys(what string, text []byte) ([]string, error) {
	var rows []map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&rows); err != nil || len(text) > maxBodyBytes || len(rows) > stalledPage {
		return nil, fmt.Errorf("%s: %w: the answer is no list of at most %d rows", what, lifecycle.ErrRefused, stalledPage)
	}
	keys := make([]string, 0, len(rows))
	for _, row := range rows {
		var key string
		switch v := row[q.o.Stalled.Key].(type) {
		case string:
			key = v
		case json.Number:
			key = v.String()
		}
		if key == "" || len(key) > maxKeyBytes {
			return nil, fmt.Errorf("%s: %w: column %s of a row holds no number or text of at most %d bytes", what, lifecycle.ErrRefused,
				q.o.Stalled.Key, maxKeyBytes)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
