package githubsim

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

func (s *Server) serve(e rest.Endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := e(r)
		switch {
		case err != nil:
			s.writeError(w, r, err)
		case a == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			for k, v := range a.Header {
				w.Header()[k] = v
			}
			rest.WriteJSON(w, a.Status, a.Body)
		}
	})
}

func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var e *rest.Error
	if !errors.As(err, &e) {
		s.log.Error("call failed", "method", r.Method, "path", r.URL.Path, "error", err)
		e = &rest.Error{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	for k, v := range e.Header {
		w.Header()[k] = v
	}
	body := rest.Object{"message": e.Message, "documentation_url": cmp.Or(e.Documentation, rest.Documentation), "status": strconv.Itoa(e.Status)}
	if len(e.Problems) > 0 {
		body["errors"] = e.Problems
	}
	rest.WriteJSON(w, e.Status, body)
}

// pause waits for d, or until the caller has gone or the server stops.
func (s *Server) pause(r *http.Request, d time.Duration, ended <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ended:
	case <-r.Context().Done():
	case <-s.stop:
	}
}
