package payload

import (
	"cmp"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// IDTokenClaims returns the claims of a job's ID token that is good for life, those of https://docs.github.com/actions/reference/openid-connect-reference, all texts but the times.
func (s Site) IDTokenClaims(r *state.Run, j *state.Job, now time.Time, life time.Duration) rest.Object {
	owner := state.OwnerOf(r.Repository)
	environment := environmentSelf
	if j.Hosted {
		environment = environmentHosted
	}
	return rest.Object{
		"iss": s.URL, "aud": s.URL + "/" + owner, "sub": subjectOf(r), "jti": uuid.NewString(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(life).Unix(),
		"repository": r.Repository, "repository_id": fmt.Sprint(state.IDOf(r.Repository)), "repository_owner": owner,
		"repository_owner_id": fmt.Sprint(state.IDOf(owner)), "repository_visibility": "private",
		"run_id": fmt.Sprint(r.ID), "run_number": fmt.Sprint(r.Number), "run_attempt": fmt.Sprint(cmp.Or(j.Attempt, r.Attempt)),
		"actor": Actor, "actor_id": fmt.Sprint(state.IDOf(Actor)), "event_name": r.Event(),
		"ref": r.Ref(), "ref_type": r.RefType(), "ref_protected": "false", "head_ref": r.HeadRef(), "base_ref": r.BaseRef(), "sha": r.SHA(),
		"workflow": r.Workflow, "workflow_ref": r.WorkflowRef(), "workflow_sha": r.SHA(),
		"job_workflow_ref": r.WorkflowRef(), "job_workflow_sha": r.SHA(), "runner_environment": environment,
		"check_run_id": fmt.Sprint(j.ID),
	}
}

func subjectOf(r *state.Run) string {
	if r.OfPullRequest() {
		return "repo:" + r.Repository + ":pull_request"
	}
	return "repo:" + r.Repository + ":ref:" + r.Ref()
}

// The values of runner_environment.
const (
	environmentSelf   = "self-hosted"
	environmentHosted = "github-hosted"
)
