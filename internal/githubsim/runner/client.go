package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

const (
	callTime = 15 * time.Second // for a call that is answered at once
	pollTime = protocol.PollTime + callTime

	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second // so that a stand-in that is back is found at once
)

// client speaks to the stand-in with one secret.
type client struct {
	base   string
	secret string
	http   *http.Client
}

func newClient(base, secret string) *client {
	return &client{base: base, secret: secret, http: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}}
}

// statusError is an answer other than success.
type statusError struct {
	code    int
	message string
	body    string
}

func (e *statusError) Error() string { return e.message }

// codeOf is the status of the answer that err stands for; 0 if there was none.
func codeOf(err error) int {
	var e *statusError
	if errors.As(err, &e) {
		return e.code
	}
	return 0
}

// passing reports whether err may be gone at the next try: no answer, or one that says so.
func passing(err error) bool {
	code := codeOf(err)
	return err != nil && (code == 0 || code == http.StatusTooManyRequests || code >= 500)
}

// call sends body, JSON unless it is a []byte, and reads the answer into into unless that is nil. It reports false for an
// answer without a body.
func (c *client) call(ctx context.Context, limit time.Duration, method, path string, query url.Values, body, into any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	content, raw := body.([]byte)
	if !raw && body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return false, fmt.Errorf("encode request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path+"?"+query.Encode(), bytes.NewReader(content))
	if err != nil {
		return false, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.secret)
	resp, err := c.http.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL, whose query has the session in it
		}
		return false, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, fmt.Errorf("%s %s: read answer: %w", method, path, err)
	}
	if resp.StatusCode >= 300 {
		return false, &statusError{resp.StatusCode, problemText(answer, resp.Status), strings.TrimSpace(string(answer))}
	}
	if into == nil || resp.StatusCode == http.StatusNoContent {
		return false, nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return false, fmt.Errorf("%s %s: decode answer: %w", method, path, err)
	}
	return true, nil
}

// insist repeats f for as long as its error may pass and limit lasts.
func insist(ctx context.Context, limit time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for wait := firstBackoff; ; wait = min(2*wait, maxBackoff) {
		err := f()
		if !passing(err) {
			return err
		}
		select {
		case <-time.After(rand.N(wait) + 1):
		case <-ctx.Done():
			return err
		}
	}
}
