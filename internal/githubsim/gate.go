package githubsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// gate is what stands before every call of GitHub's: it is counted, it costs its caller, it may be made to fail, and its caller
// must be known.
func (s *Server) gate(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(rt.pattern)
		s.pause(r, s.times.API, nil)
		c, refused := s.identify(r)
		within := s.limit.Take(c.key, rt.pattern)
		a, err := s.pass(rt, withCaller(r, c), c, within, refused)
		if err != nil {
			s.limit.SetHeaders(w.Header(), c.key, rt.pattern)
			s.writeError(w, r, err)
			return
		}
		s.answerGitHub(w, r, c, a, rt.pattern)
	})
}

func (s *Server) pass(rt route, r *http.Request, c caller, within bool, refused error) (*rest.Answer, error) {
	if !within {
		e := &rest.Error{Status: http.StatusForbidden, Message: "API rate limit exceeded for " + c.key[:strings.IndexByte(c.key+" ", ' ')] + "."}
		e.Documentation = rest.DocumentationPrimary
		return nil, e
	}
	if err := s.strike(r, rt.pattern); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	if err := c.admit(r, rt); err != nil {
		return nil, err
	}
	return rt.handle(r)
}

// strike lets a fault of the route take the call.
func (s *Server) strike(r *http.Request, pattern string) error {
	cleared := s.faults.Cleared()
	f := s.faults.Take(pattern)
	if f.DelayMS > 0 {
		s.pause(r, f.Delay(), cleared)
	}
	if f.Status == 0 {
		return nil
	}
	e := &rest.Error{Status: f.Status, Message: "fault of the GitHub stand-in", Header: http.Header{}}
	limited := f.Status == http.StatusForbidden || f.Status == http.StatusTooManyRequests
	switch {
	case limited && f.RetryAfter > 0:
		e.Message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
		e.Documentation = rest.DocumentationSecondary
		fallthrough
	case f.RetryAfter > 0:
		e.Header.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	case slices.Contains([]int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable}, f.Status):
		e.Header.Set("Retry-After", "1")
	}
	return e
}

// answerGitHub writes an answer, or that it is the one the caller has: then the call was free.
func (s *Server) answerGitHub(w http.ResponseWriter, r *http.Request, c caller, a *rest.Answer, route string) {
	if a == nil {
		a = &rest.Answer{Status: http.StatusNoContent}
	}
	if a.Body == nil {
		maps.Copy(w.Header(), a.Header)
		s.limit.SetHeaders(w.Header(), c.key, route)
		w.WriteHeader(a.Status)
		return
	}
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(a.Body); err != nil {
		s.writeError(w, r, fmt.Errorf("encode answer: %w", err))
		return
	}
	h := w.Header()
	for k, v := range a.Header {
		h[k] = v
	}
	same := false
	if r.Method == http.MethodGet {
		tag := rest.ETag(a.Header.Get("Link"), body.Bytes())
		h.Set("ETag", tag)
		h.Set("Cache-Control", "private, max-age=60, s-maxage=60")
		same = rest.MatchesETag(r.Header.Get("If-None-Match"), tag)
	}
	if same {
		s.limit.Return(c.key, route)
		s.limit.SetHeaders(h, c.key, route)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.limit.SetHeaders(h, c.key, route)
	h.Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.Status)
	// Writing fails only when the client has gone away, and then the error cannot be reported.
	_, _ = w.Write(body.Bytes())
}
