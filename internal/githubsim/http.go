package githubsim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/workflow"
)

// maxBody bounds what a call may send: workflow files and pieces of a log are the largest.
const maxBody = 4 << 20

// httpError is an error with the answer it makes.
type httpError struct {
	status        int
	message       string
	errors        []string
	documentation string      // default: that of the REST API
	header        http.Header // of the answer
}

func (e *httpError) Error() string {
	return strings.Join(append([]string{e.message}, e.errors...), "; ")
}

func problem(status int, format string, args ...any) error {
	return &httpError{status: status, message: fmt.Sprintf(format, args...)}
}

var errNotFound = problem(http.StatusNotFound, "Not Found")

// refused makes the answer to a workflow file that cannot run.
func refused(err error) error {
	e := &httpError{status: http.StatusUnprocessableEntity, message: err.Error()}
	var invalid *workflow.Invalid
	if errors.As(err, &invalid) {
		e.errors = invalid.Problems
		e.message = "invalid workflow file"
	}
	return e
}

// endpoint answers one call: with a body, or nil for 204, or an error.
type endpoint func(r *http.Request) (*answer, error)

type answer struct {
	status int
	header http.Header
	body   any
}

func ok(body any) *answer      { return &answer{status: http.StatusOK, body: body} }
func created(body any) *answer { return &answer{status: http.StatusCreated, body: body} }

func (s *Server) serve(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := e(r)
		switch {
		case err != nil:
			s.writeError(w, r, err)
		case a == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			for k, v := range a.header {
				w.Header()[k] = v
			}
			writeJSON(w, a.status, a.body)
		}
	})
}

func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var e *httpError
	if !errors.As(err, &e) {
		s.log.Error("call failed", "method", r.Method, "path", r.URL.Path, "error", err)
		e = &httpError{status: http.StatusInternalServerError, message: err.Error()}
	}
	for k, v := range e.header {
		w.Header()[k] = v
	}
	body := object{"message": e.message, "documentation_url": cmp.Or(e.documentation, documentation), "status": strconv.Itoa(e.status)}
	if len(e.errors) > 0 {
		body["errors"] = e.errors
	}
	writeJSON(w, e.status, body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	// A client that has gone away is the only way for this to fail, and nobody is left to tell.
	_ = json.NewEncoder(w).Encode(body)
}

// decode reads a JSON body strictly when strict is set: the stand-in's own calls take no unknown field, so that a misspelt one
// is not ignored. GitHub's take any.
func decode(r *http.Request, into any, strict bool) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return problem(http.StatusBadRequest, "Problems parsing JSON: %v", err)
	}
	return nil
}

func pathID(r *http.Request, name string) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil {
		return 0, errNotFound
	}
	return id, nil
}

// bearer is the secret of an Authorization header, whatever its scheme.
func bearer(r *http.Request) string {
	_, secret, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found {
		return ""
	}
	return strings.TrimSpace(secret)
}

// pause waits for d, or until the caller has gone or the server stops.
func (s *Server) pause(r *http.Request, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	case <-s.stop:
	}
}
