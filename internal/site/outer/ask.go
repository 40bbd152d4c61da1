package outer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/site"
)

const (
	// maxPage is how much of a page is read for its places.
	maxPage = 8 << 20
	// maxWait is the longest that a server may have the check wait before the next try.
	maxWait = time.Minute
	// firstWait is the wait after the first try; each later one is twice as long.
	firstWait = 5 * time.Second
	// agent says who asks, so that a server's operator can find out.
	agent = "remuda-links (+" + site.Repository + ")"
)

// again is an answer after which the address is asked for once more.
type again struct {
	why   string
	after time.Duration // 0: the server does not say
}

func (e *again) Error() string { return e.why }

// ask asks for an address until it answers or the tries are over. The error is that of the context.
func (c *Checker) ask(ctx context.Context, address string) (found, error) {
	wait := firstWait
	for try := 1; ; try++ {
		if err := c.pause(ctx, address); err != nil {
			return found{}, err
		}
		is, err := c.get(ctx, address)
		var later *again
		switch {
		case ctx.Err() != nil:
			return found{}, context.Cause(ctx)
		case !errors.As(err, &later):
			return is, nil
		case try >= c.Tries:
			return found{wrong: later.why}, nil
		}
		if err := c.sleep(ctx, min(max(wait, later.after), maxWait)); err != nil {
			return found{}, err
		}
		wait *= 2
	}
}

// pause waits where the server has just been asked.
func (c *Checker) pause(ctx context.Context, address string) error {
	to, err := url.Parse(address)
	if err != nil {
		return nil // get says so
	}
	same := to.Host == c.last
	c.last = to.Host
	if !same {
		return nil
	}
	return c.sleep(ctx, c.Pause)
}

func (c *Checker) sleep(ctx context.Context, d time.Duration) error {
	if c.Sleep == nil || d <= 0 {
		return nil
	}
	return c.Sleep(ctx, d)
}

// get asks once. The error is *again or nil.
func (c *Checker) get(ctx context.Context, address string) (found, error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return found{wrong: "it is no address"}, nil
	}
	req.Header.Set("User-Agent", agent)
	moved := true // by permanent redirects alone
	client := http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return errTooMany
		}
		if s := req.Response.StatusCode; s != http.StatusMovedPermanently && s != http.StatusPermanentRedirect {
			moved = false
		}
		return nil
	}}
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, errTooMany):
		return found{wrong: errTooMany.Error()}, nil
	case errors.Is(err, context.DeadlineExceeded):
		return found{}, &again{why: fmt.Sprintf("there is no answer within %s", c.Timeout)}
	case err != nil:
		return found{}, &again{why: "there is no answer: " + err.Error()}
	}
	defer resp.Body.Close()
	is, err := judged(resp)
	if end := resp.Request.URL.String(); err == nil && is.wrong == "" && is.note == "" && end != address && moved {
		is.note = "it has moved to " + end
	}
	return is, err
}

// maxRedirects is what browsers allow at least.
const maxRedirects = 10

var errTooMany = errors.New("it leads on and on, by redirects")

// judged reads an answer.
func judged(resp *http.Response) (found, error) {
	switch s := resp.StatusCode; {
	case s == http.StatusTooManyRequests || s >= 500:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // a date, or none: the own wait
		return found{}, &again{why: "the answer is " + resp.Status, after: time.Duration(seconds) * time.Second}
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return found{note: "the answer to a program is " + resp.Status + ": look with a browser"}, nil
	case s < 200 || s > 299:
		return found{wrong: "the answer is " + resp.Status}, nil
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/html" {
		return found{}, nil
	}
	body := &io.LimitedReader{R: resp.Body, N: maxPage}
	anchors, err := site.Anchors(body)
	switch {
	case err != nil:
		return found{}, &again{why: "the page breaks off: " + err.Error()}
	case body.N == 0:
		return found{}, nil
	}
	return found{anchors: anchors}, nil
}
