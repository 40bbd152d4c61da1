package githubsim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The pages that GitHub's refusals point to. Clients tell the secondary limit by the end of its address.
const (
	documentation          = "https://docs.github.com/rest"
	documentationPrimary   = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"
	documentationSecondary = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
)

// gate is what stands before every call of GitHub's: it is counted, it costs its caller, it may be made to fail, and its caller
// must be known.
func (s *Server) gate(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.add(rt.pattern)
		c, refused := s.identify(r)
		within := s.limit.take(c.key)
		a, err := s.pass(rt, withCaller(r, c), c, within, refused)
		if err != nil {
			s.limit.tell(w.Header(), c.key)
			s.writeError(w, r, err)
			return
		}
		s.answerGitHub(w, r, c, a)
	})
}

func (s *Server) pass(rt route, r *http.Request, c caller, within bool, refused error) (*answer, error) {
	if !within {
		e := &httpError{status: http.StatusForbidden, message: "API rate limit exceeded for " + c.key[:strings.IndexByte(c.key+" ", ' ')] + "."}
		e.documentation = documentationPrimary
		return nil, e
	}
	if err := s.strike(r, rt.pattern); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	if err := c.admit(r, rt.appsOnly); err != nil {
		return nil, err
	}
	return rt.handle(r)
}

// strike lets a fault of the route take the call.
func (s *Server) strike(r *http.Request, pattern string) error {
	f := s.faults.take(pattern)
	if f.DelayMS > 0 {
		s.pause(r, f.delay())
	}
	if f.Status == 0 {
		return nil
	}
	e := &httpError{status: f.Status, message: "fault of the GitHub stand-in", header: http.Header{}}
	limited := f.Status == http.StatusForbidden || f.Status == http.StatusTooManyRequests
	switch {
	case limited && f.RetryAfter > 0:
		e.message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
		e.documentation = documentationSecondary
		fallthrough
	case f.RetryAfter > 0:
		e.header.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	case slices.Contains([]int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable}, f.Status):
		e.header.Set("Retry-After", "1")
	}
	return e
}

// answerGitHub writes an answer, or that it is the one the caller has: then the call was free.
func (s *Server) answerGitHub(w http.ResponseWriter, r *http.Request, c caller, a *answer) {
	if a == nil {
		s.limit.tell(w.Header(), c.key)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(a.body); err != nil {
		s.writeError(w, r, fmt.Errorf("encode answer: %w", err))
		return
	}
	h := w.Header()
	for k, v := range a.header {
		h[k] = v
	}
	same := false
	if r.Method == http.MethodGet {
		tag := etagOf(a.header.Get("Link"), body.Bytes())
		h.Set("ETag", tag)
		h.Set("Cache-Control", "private, max-age=60, s-maxage=60")
		same = matches(r.Header.Get("If-None-Match"), tag)
	}
	if same {
		s.limit.giveBack(c.key)
		s.limit.tell(h, c.key)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.limit.tell(h, c.key)
	h.Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.status)
	// A client that has gone away is the only way for this to fail, and nobody is left to tell.
	_, _ = w.Write(body.Bytes())
}

func etagOf(link string, body []byte) string {
	sum := sha256.Sum256(append([]byte(link+"\n"), body...))
	return `W/"` + hex.EncodeToString(sum[:]) + `"`
}

// matches compares weakly, as If-None-Match does (RFC 9110).
func matches(header, tag string) bool {
	for _, one := range strings.Split(header, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
