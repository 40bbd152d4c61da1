// Package web serves controld's HTTP: whether it lives, whether it is ready, its metrics, where GitHub
// delivers its webhooks, where workers of services call, and the page for people. It is plain HTTP: what needs no credentials
// changes nothing and tells nothing of runs, a delivery is signed, workers have a token, and the page knows its callers
// itself. A load balancer brings TLS.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/logkey"
)

// The bounds of a call. A caller who is slower, or asks for more, has no business here: the largest answer is
// some 100 KiB of metrics. Deliveries have bounds of their own.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	// writeTimeout leaves time to count the hosts for the metrics.
	writeTimeout   = 30 * time.Second
	idleTimeout    = time.Minute
	maxHeaderBytes = 16 << 10
	maxBodyBytes   = 1 << 10
	// readyTimeout: a store that takes longer to read one row cannot serve. It
	// is far less than the time for which the store itself waits for a lock.
	readyTimeout = 2 * time.Second
)

// Options are the parts that a Server shows. All but Webhooks, Workers, Scale and Log are required.
type Options struct {
	// Ready says what keeps controld from serving; nil when nothing does.
	Ready func(ctx context.Context) error
	// Metrics serves the counts.
	Metrics http.Handler
	// Webhooks takes GitHub's deliveries; nil: none are.
	Webhooks *Webhooks
	// Workers takes the calls of the workers of services; nil: there are none.
	Workers *WorkerRoutes
	// Page is the page for people, below each of PagePaths; nil: there is none. The first path is where it begins.
	Page      http.Handler
	PagePaths []string
	// Scale takes the calls that a job waits for a service; nil: none are taken.
	Scale *Scale
	Log   hclog.Logger
}

// Server is the HTTP server.
type Server struct {
	ready func(ctx context.Context) error
	log   hclog.Logger
	http  http.Server
}

// New checks the options and returns a Server.
func New(o Options) (*Server, error) {
	if o.Ready == nil || o.Metrics == nil {
		return nil, errors.New("new web server: ready and metrics are required")
	}
	o.Log = cmp.Or(o.Log, hclog.NewNullLogger())
	s := &Server{ready: o.Ready, log: o.Log}
	handler, err := s.routes(o)
	if err != nil {
		return nil, fmt.Errorf("new web server: %w", err)
	}
	s.http = http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: o.Log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	return s, nil
}

// routes leads to the handlers, each with the bound of its bodies.
func (s *Server) routes(o Options) (http.Handler, error) {
	plain := http.NewServeMux()
	plain.HandleFunc("GET /healthz", s.health)
	plain.HandleFunc("GET /readyz", s.readiness)
	plain.Handle("GET /metrics", o.Metrics)
	small := http.MaxBytesHandler(plain, maxBodyBytes)
	mux := http.NewServeMux()
	mux.Handle("/", small)
	if o.Workers != nil {
		o.Workers.add(mux)
	}
	if o.Page != nil {
		for _, path := range o.PagePaths {
			mux.Handle(path, o.Page)
		}
		mux.Handle("GET /{$}", http.RedirectHandler(o.PagePaths[0], http.StatusSeeOther))
	}
	if err := addScale(mux, o.Scale, o.Log.Named("scale")); err != nil {
		return nil, err
	}
	if o.Webhooks == nil {
		return mux, nil
	}
	deliveries, err := newReceiver(*o.Webhooks, o.Log.Named("webhooks"))
	if err != nil {
		return nil, err
	}
	mux.Handle(webhookPath, deliveries)
	return mux, nil
}

// Serve answers on ln until Stop, and then returns nil.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http on %s: %w", ln.Addr(), err)
	}
	return nil
}

// Stop takes no more calls and lets those under way end until ctx does. Then it cuts them off.
func (s *Server) Stop(ctx context.Context) {
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("cut off http calls that had not ended", logkey.Error, err)
		_ = s.http.Close() // its listeners are closed already: there is nothing else to fail
	}
}

// health only says that this process runs and answers: restarting it would not bring
// back a store that does not answer.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive") }

// readiness says whether to send callers here, and what is wrong if not.
func (s *Server) readiness(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := s.ready(ctx); err != nil {
		s.log.Debug("not ready", logkey.Error, err)
		say(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return
	}
	say(w, http.StatusOK, "ready")
}

// answerCall answers who came with a token. A refusal says how to call, or when to call again.
func answerCall(w http.ResponseWriter, status int, text string) {
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "2")
	}
	say(w, status, text)
}

// say answers with one line that no cache may keep.
func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // the caller has left
}

// maxReaders is how many bodies are read at once for one token. Bodies come as slowly as their senders like:
// what waits for one holds no place that callers with another token need, and the memory for them is bounded
// by how many tokens are good.
const maxReaders = 64

// readers counts the bodies that are being read, by token.
type readers struct {
	mu    sync.Mutex
	under map[string]int
}

func newReaders() *readers { return &readers{under: map[string]int{}} }

// begin takes a place until end is called; false: there is none. The token must
// be known to be good, or an unknown caller could fill the memory.
func (r *readers) begin(token string) (end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under[token] >= maxReaders {
		return nil, false
	}
	r.under[token]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.under[token]--; r.under[token] == 0 {
			delete(r.under, token)
		}
	}, true
}
