package github

import (
	"bytes"
	"io"
	"net/http"
)

const (
	// maxAnswers is how many bytes of answers are kept to be asked for again. A
	// page of 100 runners is below 200 KiB, mostly far below.
	maxAnswers = 16 << 20
	// maxAnswer is the largest that is kept.
	maxAnswer = 1 << 20
)

// answers keeps what GitHub answered, for conditional requests. They count against no limit when nothing has
// changed (docs.github.com, best practices for the REST API). A new token makes new tags, so that an App's
// installation pays for each answer once an hour (github/docs#34689).
type answers = lru[string, *storedAnswer]

type storedAnswer struct {
	tag    string
	header http.Header
	body   []byte
}

// conditional makes the reads of one credential conditional on what is kept.
type conditional struct {
	credential string
	answers    *answers
	next       http.RoundTripper
}

// RoundTrip changes the request's header: it is the caller's own clone.
func (c *conditional) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return c.next.RoundTrip(r)
	}
	key := c.credential + " " + r.URL.String()
	old, _ := c.answers.get(key)
	if old != nil {
		r.Header.Set("If-None-Match", old.tag)
	}
	response, err := c.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusNotModified && old != nil:
		return old.again(response), nil
	case response.StatusCode == http.StatusOK && response.Header.Get("ETag") != "":
		return c.keep(key, response)
	}
	return response, nil
}

// keep reads an answer that has a tag, and stores it.
func (c *conditional) keep(key string, response *http.Response) (*http.Response, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if len(body) <= maxAnswer {
		c.answers.put(key, &storedAnswer{response.Header.Get("ETag"), response.Header.Clone(), body}, len(key)+len(body))
	}
	return response, nil
}

// again is the stored answer with what the new one says of limits.
func (s *storedAnswer) again(unchanged *http.Response) *http.Response {
	_ = unchanged.Body.Close() // it is empty
	response := *unchanged
	response.StatusCode, response.Status = http.StatusOK, "200 OK"
	response.Header = s.header.Clone()
	for name, values := range unchanged.Header {
		response.Header[name] = values
	}
	response.Header.Del("Content-Length")
	response.ContentLength = int64(len(s.body))
	response.Body = io.NopCloser(bytes.NewReader(s.body))
	return &response
}
