package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/logkey"
)

// The bounds of a worker's calls. A payload of 64 KiB is 86 in base64, and of
// the lines of a log each byte may be six in JSON.
const (
	maxWorkerBody = 4 << 10
	maxSubmitBody = 96 << 10
	maxLogBody    = 400 << 10
	// maxWorkerCalls is how many are handled at once; more get 503.
	maxWorkerCalls = 256
)

// Workers takes the calls of workers and of who submits jobs. C is what it knows
// of a caller. Its errors are statuses of gRPC.
type Workers[C any] interface {
	// Caller tells whose token it is.
	Caller(token string) (C, error)
	// Call makes a call by its name, with fields beside those of the request, which is JSON as the answer is.
	Call(ctx context.Context, from C, call string, fields map[string]string, request []byte) ([]byte, error)
}

// workerCall is a call and the bound of its body.
type workerCall struct {
	pattern string
	call    string
	body    int64
	// lists are the names in a query that may be there more than once.
	lists []string
}

// workerCalls are by the paths at which they are served. Those that are read have
// no body, and their request in the query.
var workerCalls = []workerCall{
	{"POST /api/jobs", "SubmitJob", maxSubmitBody, nil},
	{"GET /api/jobs", "ListJobs", 0, []string{"states"}},
	{"GET /api/jobs/{job_id}", "GetJob", 0, nil},
	{"POST /api/jobs/{job_id}/log", "AppendJobLog", maxLogBody, nil},
	{"POST /api/jobs/{job_id}/finish", "FinishJob", maxWorkerBody, nil},
	{"POST /api/workers/heartbeat", "Heartbeat", maxWorkerBody, nil},
	{"POST /api/workers/claim", "ClaimJob", maxWorkerBody, nil},
	{"GET /api/workers", "ListWorkers", 0, nil},
}

// WorkerRoutes serves the calls of workers. Its handlers are in Options.Workers.
type WorkerRoutes struct {
	own *http.ServeMux // which answers other methods at their paths
}

// NewWorkerRoutes has the calls taken by w.
func NewWorkerRoutes[C any](w Workers[C], log hclog.Logger) *WorkerRoutes {
	slots, reading := make(chan struct{}, maxWorkerCalls), newReaders()
	r := &WorkerRoutes{http.NewServeMux()}
	for _, c := range workerCalls {
		r.own.Handle(c.pattern, &workerHandler[C]{Workers: w, workerCall: c, log: log, slots: slots, reading: reading})
	}
	return r
}

// add puts the routes into a mux.
func (r *WorkerRoutes) add(mux *http.ServeMux) {
	for _, path := range []string{"/api/jobs", "/api/jobs/", "/api/workers", "/api/workers/"} {
		mux.Handle(path, r.own)
	}
}

type workerHandler[C any] struct {
	Workers[C]
	workerCall
	log     hclog.Logger
	slots   chan struct{}
	reading *readers
}

func (h *workerHandler[C]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := h.answer(w, r)
	if err != nil {
		h.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(append(response, '\n')) // the caller has left
}

// answer makes a call. Until its caller is known, nothing of its body is read;
// until that has come, it takes no place from other callers.
func (h *workerHandler[C]) answer(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	token, err := bearer(r)
	if err != nil {
		return nil, err
	}
	from, err := h.Caller(token)
	if err != nil {
		return nil, err
	}
	request, err := h.read(w, r, token)
	if err != nil {
		return nil, err
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		return nil, errTooManyCalls
	}
	fields := map[string]string{}
	if id := r.PathValue("job_id"); id != "" {
		fields["job_id"] = id
	}
	return h.Call(r.Context(), from, h.call, fields, request)
}

var errTooManyCalls = status.Error(codes.Unavailable, "too many calls at once")

// read reads the request in a place of its token.
func (h *workerHandler[C]) read(w http.ResponseWriter, r *http.Request, token string) ([]byte, error) {
	end, ok := h.reading.begin(token)
	if !ok {
		return nil, errTooManyCalls
	}
	defer end()
	return h.request(w, r)
}

// bearer is the token of a call.
func bearer(r *http.Request) (string, error) {
	header := r.Header.Values("Authorization")
	if len(header) == 1 {
		if scheme, token, ok := strings.Cut(header[0], " "); ok && strings.EqualFold(scheme, "bearer") && token != "" {
			return token, nil
		}
	}
	return "", status.Error(codes.Unauthenticated, `a worker token is required: "Authorization: Bearer TOKEN"`)
}

// request is the request of a call in JSON.
func (h *workerHandler[C]) request(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if h.body == 0 {
		return h.queryJSON(r)
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, outcomeContentType, "send JSON, with the content type application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.body))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, refuse(http.StatusRequestEntityTooLarge, outcomeOversized, "more than %d bytes", h.body)
	case err != nil:
		return nil, refuse(http.StatusBadRequest, outcomeCutOff, "the body was cut off")
	}
	return body, nil
}

// queryJSON is a query as a JSON object of texts and lists of texts. JSON of a
// proto may have numbers as texts too.
func (c workerCall) queryJSON(r *http.Request) ([]byte, error) {
	object := map[string]any{}
	for name, values := range r.URL.Query() {
		switch {
		case slices.Contains(c.lists, name):
			object[name] = values
		case len(values) == 1:
			object[name] = values[0]
		default:
			return nil, status.Errorf(codes.InvalidArgument, "%.80q: is there more than once", name)
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("read query: %w", err)
	}
	return text, nil
}

// workerStatus are those of HTTP for the codes of gRPC.
var workerStatus = map[codes.Code]int{
	codes.InvalidArgument:    http.StatusBadRequest,
	codes.Unauthenticated:    http.StatusUnauthorized,
	codes.PermissionDenied:   http.StatusForbidden,
	codes.NotFound:           http.StatusNotFound,
	codes.AlreadyExists:      http.StatusConflict,
	codes.FailedPrecondition: http.StatusConflict,
	codes.Unavailable:        http.StatusServiceUnavailable,
	codes.DeadlineExceeded:   http.StatusGatewayTimeout,
	codes.Canceled:           http.StatusServiceUnavailable,
}

// refuse tells what is wrong in one line.
func (h *workerHandler[C]) refuse(w http.ResponseWriter, err error) {
	code, text := http.StatusInternalServerError, ""
	var own *answer
	if errors.As(err, &own) {
		code, text = own.status, own.text
	} else {
		is := status.Convert(err)
		text = is.Message()
		if known, ok := workerStatus[is.Code()]; ok {
			code = known
		}
	}
	h.log.Debug("worker's call refused", logkey.Call, h.call, logkey.Status, code, logkey.Reason, text)
	answerCall(w, code, text)
}
