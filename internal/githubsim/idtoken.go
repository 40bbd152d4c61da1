package githubsim

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"

	"github.com/google/uuid"
)

// The values of runner_environment.
const (
	environmentSelf   = "self-hosted"
	environmentHosted = "github-hosted"
)

// mayHaveIDToken reports whether a job of the run may have the permission at all: pull requests from forks get none.
func (s *Server) mayHaveIDToken(r *run) bool { return r.event() != "pull_request" || !r.fromFork() }

// giveIDTokens makes what a job asks for ID tokens with. It is good while the job runs.
func (s *Server) giveIDTokens(j *job) (url, secret string) {
	if !j.IDToken {
		return "", ""
	}
	secret, j.IDTokenKey = newSecret()
	return fmt.Sprintf("%s/_standin/oidc/jobs/%d?api-version=2.0", s.baseURL, j.ID), secret
}

// jobIDToken is the endpoint that a job asks for ID tokens, as ACTIONS_ID_TOKEN_REQUEST_URL names it.
func (s *Server) jobIDToken(r *http.Request) (*rest.Answer, error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	j := s.jobs[id]
	if j == nil || j.Status != statusInProgress || j.IDTokenKey == "" || j.IDTokenKey != hashOf(rest.Bearer(r)) {
		s.mu.Unlock()
		return nil, rest.Problem(http.StatusUnauthorized, "The token is not that of a running job that may ask for ID tokens.")
	}
	claims := s.jobClaims(s.runs[j.RunID], j)
	s.mu.Unlock()
	if audience := r.URL.Query().Get("audience"); audience != "" {
		claims["aud"] = audience
	}
	value, err := s.oidc.sign(claims)
	if err != nil {
		return nil, err
	}
	return rest.OK(rest.Object{"count": len(value), "value": value}), nil
}

// jobClaims are those of https://docs.github.com/actions/reference/openid-connect-reference, all texts but the times.
func (s *Server) jobClaims(r *run, j *job) rest.Object {
	owner, now := ownerOf(r.Repository), s.now()
	environment := environmentSelf
	if j.Hosted {
		environment = environmentHosted
	}
	return rest.Object{
		"iss": s.baseURL, "aud": s.baseURL + "/" + owner, "sub": subjectOf(r), "jti": uuid.NewString(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(idTokenLife).Unix(),
		"repository": r.Repository, "repository_id": fmt.Sprint(idOf(r.Repository)), "repository_owner": owner,
		"repository_owner_id": fmt.Sprint(idOf(owner)), "repository_visibility": "private",
		"run_id": fmt.Sprint(r.ID), "run_number": fmt.Sprint(r.Number), "run_attempt": fmt.Sprint(cmp.Or(j.Attempt, r.Attempt)),
		"actor": actor, "actor_id": fmt.Sprint(idOf(actor)), "event_name": r.event(),
		"ref": r.ref(), "ref_type": r.refType(), "ref_protected": "false", "head_ref": r.headRef(), "base_ref": r.baseRef(), "sha": r.sha(),
		"workflow": r.Workflow, "workflow_ref": r.workflowRef(), "workflow_sha": r.sha(),
		"job_workflow_ref": r.workflowRef(), "job_workflow_sha": r.sha(), "runner_environment": environment,
		"check_run_id": fmt.Sprint(j.ID),
	}
}

func subjectOf(r *run) string {
	if r.ofPullRequest() {
		return "repo:" + r.Repository + ":pull_request"
	}
	return "repo:" + r.Repository + ":ref:" + r.ref()
}
