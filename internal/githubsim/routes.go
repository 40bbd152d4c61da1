package githubsim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// route is one call the stand-in answers. Its pattern is what /_standin/calls and /_standin/faults call it by.
type route struct {
	pattern  string // "METHOD /path"
	handle   rest.Endpoint
	appsOnly bool // GitHub's own: it takes an app's JSON web token and nothing else
}

// The two places that runners and tokens hang from.
var scopes = []string{"/repos/{owner}/{repo}", "/orgs/{org}"}

// githubRoutes are GitHub's own, served under /api/v3 and at the root.
func (s *Server) githubRoutes() []route {
	var out []route
	for _, at := range scopes {
		runners := at + "/actions/runners"
		out = append(out,
			route{pattern: "POST " + runners + "/registration-token", handle: s.createToken(purposeRegister)},
			route{pattern: "POST " + runners + "/remove-token", handle: s.createToken(purposeRemove)},
			route{pattern: "POST " + runners + "/generate-jitconfig", handle: s.generateJIT},
			route{pattern: "GET " + runners, handle: s.listRunners},
			route{pattern: "GET " + runners + "/{id}", handle: s.getRunner},
			route{pattern: "DELETE " + runners + "/{id}", handle: s.deleteRunner},
			route{pattern: "GET " + runners + "/{id}/labels", handle: s.listLabels},
			route{pattern: "PUT " + runners + "/{id}/labels", handle: s.setLabels(false)},
			route{pattern: "POST " + runners + "/{id}/labels", handle: s.setLabels(true)},
			route{pattern: "DELETE " + runners + "/{id}/labels", handle: s.deleteLabels},
			route{pattern: "DELETE " + runners + "/{id}/labels/{name}", handle: s.deleteLabel},
			route{pattern: "GET " + at + "/installation", handle: s.getInstallation, appsOnly: true},
		)
	}
	return slices.Concat(out, s.appRoutes(), s.runRoutes())
}

func (s *Server) appRoutes() []route {
	return []route{
		{"GET /app", s.getApp, true},
		{"GET /app/installations", s.listInstallations, true},
		{"POST /app/installations/{id}/access_tokens", s.createAccessToken, true},
		{"GET /app/hook/deliveries", s.listDeliveries, true},
		{"GET /app/hook/deliveries/{id}", s.getDelivery, true},
		{"POST /app/hook/deliveries/{id}/attempts", s.redeliver, true},
	}
}

func (s *Server) runRoutes() []route {
	repo := "/repos/{owner}/{repo}"
	run := repo + "/actions/runs/{run_id}"
	return []route{
		{"GET /orgs/{org}/actions/runner-groups", s.listGroups, false},
		{"GET " + repo + "/actions/runs", s.listRuns, false},
		{"GET " + run, s.getRun, false},
		{"GET " + run + "/jobs", s.listJobs, false},
		{"GET " + run + "/attempts/{attempt}", s.getAttempt, false},
		{"GET " + run + "/attempts/{attempt}/jobs", s.listAttemptJobs, false},
		{"DELETE " + run, s.deleteRun, false},
		{"POST " + run + "/cancel", s.cancel, false},
		{"POST " + run + "/rerun", s.rerunAll, false},
		{"POST " + run + "/rerun-failed-jobs", s.rerunFailed, false},
		{"GET " + repo + "/actions/jobs/{id}", s.getJob, false},
		{"GET " + repo + "/actions/jobs/{id}/logs", s.getJobLog, false},
		{"GET " + repo + "/branches/{branch}", s.getBranch, false},
		{"GET " + repo + "/compare/{basehead}", s.compare, false},
		{"POST " + repo + "/git/trees", s.git.CreateTree, false},
		{"POST " + repo + "/git/commits", s.git.CreateCommit, false},
		{"POST " + repo + "/git/refs", s.git.CreateRef, false},
		{"DELETE " + repo + "/git/refs/{ref...}", s.git.DeleteRef, false},
		{"POST " + repo + "/check-runs", s.createCheck, false},
		{"PATCH " + repo + "/check-runs/{id}", s.updateCheck, false},
		{"GET " + repo + "/commits/{ref}/check-runs", s.listChecks, false},
		{"GET " + repo + "/releases", s.listReleases, false},
		{"GET " + repo + "/releases/latest", s.latestRelease, false},
	}
}

// ownRoutes are the stand-in's: for demos and tests, for its runner, and its issuer of ID tokens.
func (s *Server) ownRoutes() []route {
	return []route{
		{"POST /_standin/runs", s.standinStart, false},
		{"GET /_standin/runs/{run_id}", s.standinGet, false},
		{"POST /_standin/runs/{run_id}/cancel", s.standinCancel, false},
		{"POST /_standin/runs/{run_id}/rerun", s.standinRerun, false},
		{"POST /_standin/runs/{run_id}/approve", s.standinApprove, false},
		{"GET /_standin/jobs/{id}/log", s.jobLog, false},
		{"GET /_standin/runners", s.standinRunners, false},
		{"PUT /_standin/webhooks", s.standinWebhooks, false},
		{"POST /_standin/webhooks/hold", s.standinHold, false},
		{"PUT /_standin/apps", s.standinApp, false},
		{"PUT /_standin/runner-groups", s.standinGroups, false},
		{"PUT /_standin/protected-branches", s.standinProtect, false},
		{"PUT /_standin/git", s.standinGit, false},
		{"PUT /_standin/releases", s.standinReleases, false},
		{"PUT /_standin/runner-versions", s.standinVersions, false},
		{"GET /_standin/oidc/jobs/{id}", s.jobIDToken, false},
		{"POST /_standin/oidc/token", s.oidcToken, false},
		{"GET /.well-known/jwks", s.oidcKeys, false},
		{"GET /.well-known/openid-configuration", s.oidcConfiguration, false},

		{"POST /_standin/runner/authorize", s.authorize, false},
		{"POST /_standin/runner/register", s.register, false},
		{"POST /_standin/runner/remove", s.remove, false},
		{"POST /_standin/runner/session", s.broker.OpenSession, false},
		{"DELETE /_standin/runner/session", s.broker.CloseSession, false},
		{"GET /_standin/runner/messages", s.broker.Poll, false},
		{"POST /_standin/runner/jobs/{id}/acknowledge", s.broker.Acknowledge, false},
		{"POST /_standin/runner/jobs/{id}/acquire", s.broker.Acquire, false},
		{"POST /_standin/runner/jobs/{id}/renew", s.broker.Renew, false},
		{"POST /_standin/runner/jobs/{id}/log", s.broker.AppendLog, false},
		{"POST /_standin/runner/jobs/{id}/steps", s.broker.SetSteps, false},
		{"POST /_standin/runner/jobs/{id}/complete", s.broker.Complete, false},
	}
}

// controlRoutes are neither counted nor made to fail.
func (s *Server) controlRoutes() []route {
	return []route{
		{"GET /_standin/calls", s.standinCalls, false},
		{"POST /_standin/faults", s.standinFaults, false},
		{"DELETE /_standin/faults", s.standinFaultsEnd, false},
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.githubRoutes() {
		s.faults.Know(r.pattern, true)
		h := s.gate(r)
		method, path, _ := strings.Cut(r.pattern, " ")
		mux.Handle(method+" "+path, h)
		mux.Handle(method+" /api/v3"+path, h)
	}
	for _, r := range s.ownRoutes() {
		s.faults.Know(r.pattern, false)
		mux.Handle(r.pattern, s.observe(r.pattern, s.serve(r.handle)))
	}
	for _, pattern := range gitRoutes {
		s.faults.Know(pattern, false)
		mux.Handle(pattern, s.observe(pattern, http.HandlerFunc(s.serveGit)))
	}
	for _, r := range s.controlRoutes() {
		mux.Handle(r.pattern, s.serve(r.handle))
	}
	mux.Handle("/", s.observe("", s.serve(func(*http.Request) (*rest.Answer, error) { return nil, rest.ErrNotFound })))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.learnURL(r)
		mux.ServeHTTP(w, r)
	})
}

// learnURL notes how clients reach the server, unless that is configured.
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
		s.calls.Add(route)
		if strings.Contains(route, " /_standin/runner/") {
			s.pause(r, s.times.API, nil)
		}
		if err := s.strike(r, route); err != nil {
			s.writeError(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}
