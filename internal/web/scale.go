package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	scalePath = "/api/scale"
	// maxScaleBody is more than the row of a table that a database sends along.
	maxScaleBody = 64 << 10
)

// Scale takes the calls that say that a job waits for a service. Both functions are required.
type Scale struct {
	// Services are those that a token is good for. What cannot be read of their
	// tokens is an error beside those that could.
	Services func(token string) ([]string, error)
	// Nudge has a service looked at soon. It does not wait.
	Nudge func(service string)
}

// scaler serves the calls.
type scaler struct {
	Scale
	log     hclog.Logger
	reading *readers
}

// addScale puts the route into a mux, which also answers other methods there. Without o
// it says what is missing.
func addScale(mux *http.ServeMux, o *Scale, log hclog.Logger) error {
	own := http.NewServeMux() // in mux itself the route of "/" would take other methods
	mux.Handle(scalePath, own)
	if o == nil {
		own.HandleFunc("POST "+scalePath, func(w http.ResponseWriter, _ *http.Request) {
			say(w, http.StatusNotFound, "no service that is scaled has a token: give one a nudge_token_file or a worker_token_file")
		})
		return nil
	}
	scale, err := newScaler(*o, log)
	if err != nil {
		return err
	}
	own.Handle("POST "+scalePath, scale)
	return nil
}

func newScaler(o Scale, log hclog.Logger) (*scaler, error) {
	if o.Services == nil || o.Nudge == nil {
		return nil, errors.New("scale: services and nudge are required")
	}
	return &scaler{Scale: o, log: log, reading: newReaders()}, nil
}

// ServeHTTP answers as soon as the services are noted. They are looked at afterwards:
// 202 promises a look, not its result.
func (h *scaler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, text := h.take(w, r)
	if status != http.StatusAccepted {
		h.log.Debug("scale refused", logkey.Status, status, logkey.Reason, text)
	}
	answerCall(w, status, text)
}

// take notes the services of a call. Until its caller is known, nothing of its body is read.
func (h *scaler) take(w http.ResponseWriter, r *http.Request) (status int, text string) {
	token, err := bearer(r)
	if err != nil {
		return http.StatusUnauthorized, `a token of a service is required: "Authorization: Bearer TOKEN"`
	}
	services, err := h.Services(token)
	if err != nil {
		h.log.Error("cannot read tokens of services", logkey.Error, err)
	}
	switch {
	case len(services) == 0 && err != nil:
		return http.StatusServiceUnavailable, "cannot check tokens now"
	case len(services) == 0:
		return http.StatusUnauthorized, "the token is not that of a service"
	}
	end, ok := h.reading.begin(token)
	if !ok {
		return http.StatusServiceUnavailable, "too many calls at once"
	}
	defer end()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxScaleBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return http.StatusRequestEntityTooLarge, "more than 64 KiB: no body is needed"
	case err != nil:
		return http.StatusBadRequest, "the body was cut off"
	}
	if named := namedService(r, body); named != "" {
		if !slices.Contains(services, named) {
			return http.StatusForbidden, "the token is not that of the service that is named"
		}
		services = []string{named}
	}
	for _, name := range services {
		h.Nudge(name)
	}
	return http.StatusAccepted, "looking at " + strings.Join(services, ", ")
}

// namedService is the one of the token's services that is meant, by the query or by a JSON body; empty: all
// of them. Whatever else a database sends along when a row comes is no concern of ours.
func namedService(r *http.Request, body []byte) string {
	if named := r.URL.Query().Get("service"); named != "" {
		return named
	}
	var object struct {
		Service string `json:"service"`
	}
	if json.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.Service
}
