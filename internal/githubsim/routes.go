package githubsim

import (
	"net/http"
	"slices"
	"strings"
)

// route is one call the stand-in answers. Its pattern is what /_standin/calls and /_standin/faults call it by.
type route struct {
	pattern string // "METHOD /path"
	handle  endpoint
}

// The two places that runners and tokens hang from.
var scopes = []string{"/repos/{owner}/{repo}", "/orgs/{org}"}

// githubRoutes are GitHub's own, served under /api/v3 and at the root.
func (s *Server) githubRoutes() []route {
	var out []route
	for _, at := range scopes {
		runners := at + "/actions/runners"
		out = append(out,
			route{"POST " + runners + "/registration-token", s.createToken(purposeRegister)},
			route{"POST " + runners + "/remove-token", s.createToken(purposeRemove)},
			route{"POST " + runners + "/generate-jitconfig", s.generateJIT},
			route{"GET " + runners, s.listRunners},
			route{"GET " + runners + "/{id}", s.getRunner},
			route{"DELETE " + runners + "/{id}", s.deleteRunner},
			route{"GET " + runners + "/{id}/labels", s.listLabels},
			route{"DELETE " + runners + "/{id}/labels", s.deleteLabels},
			route{"DELETE " + runners + "/{id}/labels/{name}", s.deleteLabel},
		)
	}
	run := "/repos/{owner}/{repo}/actions/runs/{run_id}"
	return append(out,
		route{"GET " + run, s.getRun},
		route{"GET " + run + "/jobs", s.listJobs},
		route{"POST " + run + "/cancel", s.cancel},
		route{"POST " + run + "/rerun", s.rerunAll},
		route{"POST " + run + "/rerun-failed-jobs", s.rerunFailed},
	)
}

// ownRoutes are the stand-in's: for demos and tests, for its runner, and its issuer of ID tokens.
func (s *Server) ownRoutes() []route {
	return []route{
		{"POST /_standin/runs", s.standinStart},
		{"GET /_standin/runs/{run_id}", s.standinGet},
		{"POST /_standin/runs/{run_id}/cancel", s.standinCancel},
		{"POST /_standin/runs/{run_id}/rerun", s.standinRerun},
		{"GET /_standin/runners", s.standinRunners},
		{"PUT /_standin/webhooks", s.standinWebhooks},
		{"POST /_standin/oidc/token", s.oidcToken},
		{"GET /.well-known/jwks", s.oidcKeys},
		{"GET /.well-known/openid-configuration", s.oidcConfiguration},

		{"POST /_standin/runner/register", s.register},
		{"POST /_standin/runner/remove", s.remove},
		{"POST /_standin/runner/session", s.openSession},
		{"DELETE /_standin/runner/session", s.closeSession},
		{"GET /_standin/runner/messages", s.poll},
		{"POST /_standin/runner/jobs/{id}/acquire", s.acquire},
		{"POST /_standin/runner/jobs/{id}/log", s.jobLog},
		{"POST /_standin/runner/jobs/{id}/steps", s.jobSteps},
		{"POST /_standin/runner/jobs/{id}/complete", s.jobComplete},
	}
}

// controlRoutes are neither counted nor made to fail.
func (s *Server) controlRoutes() []route {
	return []route{
		{"GET /_standin/calls", s.standinCalls},
		{"POST /_standin/faults", s.standinFaults},
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.githubRoutes() {
		s.faults.know(r.pattern)
		h := s.observe(r.pattern, s.authenticate(s.limit.wrap(s, s.serve(r.handle))))
		method, path, _ := strings.Cut(r.pattern, " ")
		mux.Handle(method+" "+path, h)
		mux.Handle(method+" /api/v3"+path, h)
	}
	for _, r := range s.ownRoutes() {
		s.faults.know(r.pattern)
		mux.Handle(r.pattern, s.observe(r.pattern, s.serve(r.handle)))
	}
	for _, r := range s.controlRoutes() {
		mux.Handle(r.pattern, s.serve(r.handle))
	}
	mux.Handle("/", s.observe("", s.serve(func(*http.Request) (*answer, error) { return nil, errNotFound })))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.learnURL(r)
		mux.ServeHTTP(w, r)
	})
}

// learnURL notes how clients reach the server, unless it was told.
func (s *Server) learnURL(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fixedURL && r.Host != "" {
		s.baseURL = "http://" + r.Host
	}
}

// observe counts a call and lets a fault of its route take it.
func (s *Server) observe(pattern string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := pattern
		if route == "" {
			route = r.Method + " (unknown)"
		}
		s.calls.add(route)
		f := s.faults.take(route)
		if f.DelayMS > 0 {
			s.pause(r, f.delay())
		}
		if f.Status == 0 {
			next.ServeHTTP(w, r)
			return
		}
		if slices.Contains([]int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable}, f.Status) {
			w.Header().Set("Retry-After", "1")
		}
		s.writeError(w, r, problem(f.Status, "fault of the GitHub stand-in"))
	})
}

func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearer(r) == "" {
			s.writeError(w, r, problem(http.StatusUnauthorized, "Requires authentication"))
			return
		}
		next.ServeHTTP(w, r)
	})
}
