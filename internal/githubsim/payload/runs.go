package payload

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

func (s Site) Workflow(r *state.Run) rest.Object {
	id := r.WorkflowID()
	page := s.URL + "/" + r.Repository + "/blob/" + state.Branch + "/" + r.Path()
	return rest.Object{
		"id": id, "node_id": fmt.Sprintf("W_%d", id), "name": r.Workflow, "path": r.Path(), "state": "active",
		"created_at": rest.Time(r.CreatedAt), "updated_at": rest.Time(r.CreatedAt), "html_url": page,
		"url":       s.API("/repos/%s/actions/workflows/%d", r.Repository, id),
		"badge_url": s.URL + "/" + r.Repository + "/workflows/standin/badge.svg",
	}
}

func (s Site) Run(r *state.Run) rest.Object {
	url := s.API("/repos/%s/actions/runs/%d", r.Repository, r.ID)
	var previous any
	if r.Attempt > 1 {
		previous = fmt.Sprintf("%s/attempts/%d", url, r.Attempt-1)
	}
	return rest.Object{
		"id": r.ID, "node_id": fmt.Sprintf("WFR_%d", r.ID), "name": r.Workflow, "display_title": r.Title, "path": r.Path(),
		"head_branch": r.HeadBranch(), "head_sha": r.SHA(), "run_number": r.Number, "run_attempt": r.Attempt, "event": r.Event(),
		"status": r.Status, "conclusion": rest.OrNull(r.Conclusion), "workflow_id": r.WorkflowID(),
		"check_suite_id": r.ID, "check_suite_node_id": fmt.Sprintf("CS_%d", r.ID), "pull_requests": s.pullRequests(r),
		"created_at": rest.Time(r.CreatedAt), "updated_at": rest.Time(r.UpdatedAt), "run_started_at": rest.Time(r.StartedAt),
		"url": url, "html_url": fmt.Sprintf("%s/%s/actions/runs/%d", s.URL, r.Repository, r.ID), "jobs_url": url + "/jobs",
		"logs_url": url + "/logs", "artifacts_url": url + "/artifacts", "cancel_url": url + "/cancel", "rerun_url": url + "/rerun",
		"check_suite_url":      s.API("/repos/%s/check-suites/%d", r.Repository, r.ID),
		"workflow_url":         s.API("/repos/%s/actions/workflows/%d", r.Repository, r.WorkflowID()),
		"previous_attempt_url": previous, "referenced_workflows": []rest.Object{},
		"actor": s.User(Actor, "User"), "triggering_actor": s.User(Actor, "User"),
		"head_commit": rest.Object{
			"id": r.SHA(), "tree_id": r.SHA(), "message": "stand-in", "timestamp": rest.Time(r.CreatedAt),
			"author":    rest.Object{"name": Actor, "email": actorEmail},
			"committer": rest.Object{"name": Actor, "email": actorEmail},
		},
		"repository": s.minimalRepository(r.Repository, false), "head_repository": s.minimalRepository(r.HeadRepository(), r.FromFork()),
	}
}

// pullRequests are those of the run. For one from a fork GitHub shows none.
func (s Site) pullRequests(r *state.Run) []rest.Object {
	if !r.OfPullRequest() || r.FromFork() {
		return []rest.Object{}
	}
	_, name, _ := strings.Cut(r.Repository, "/")
	end := func(ref string) rest.Object {
		return rest.Object{"ref": ref, "sha": r.SHA(), "repo": rest.Object{
			"id": state.IDOf(r.Repository), "name": name, "url": s.API("/repos/%s", r.Repository),
		}}
	}
	return []rest.Object{{
		"id": r.ID, "number": state.PullNumber, "url": s.API("/repos/%s/pulls/%d", r.Repository, state.PullNumber),
		"head": end(r.HeadBranch()), "base": end(state.Branch),
	}}
}

func (s Site) Job(r *state.Run, j *state.Job, group string) rest.Object {
	url := s.API("/repos/%s/actions/jobs/%d", r.Repository, j.ID)
	o := rest.Object{
		"id": j.ID, "run_id": j.RunID, "run_url": s.API("/repos/%s/actions/runs/%d", r.Repository, r.ID), "run_attempt": j.Attempt,
		"node_id": fmt.Sprintf("CR_%d", j.ID), "head_branch": r.HeadBranch(), "head_sha": r.SHA(), "url": url,
		"html_url": fmt.Sprintf("%s/%s/actions/runs/%d/job/%d", s.URL, r.Repository, r.ID, j.ID),
		"status":   j.Status, "conclusion": rest.OrNull(j.Conclusion), "created_at": rest.Time(j.CreatedAt), "completed_at": rest.Time(j.CompletedAt),
		"started_at": rest.Time(firstSet(j.StartedAt, j.CreatedAt)), "name": j.Name, "workflow_name": r.Workflow, "labels": j.Labels,
		"check_run_url": s.API("/repos/%s/check-runs/%d", r.Repository, j.ID), "steps": j.Progress,
		"runner_id": nil, "runner_name": nil, "runner_group_id": nil, "runner_group_name": nil,
	}
	if j.Progress == nil {
		o["steps"] = []protocol.StepState{}
	}
	if !j.StartedAt.IsZero() {
		o["runner_id"], o["runner_name"], o["runner_group_id"], o["runner_group_name"] = j.RunnerID, j.RunnerName, j.GroupID, group
	}
	return o
}

// firstSet is the first of the two that is set: GitHub gives a queued job the time of its creation as its start.
func firstSet(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// GitHubContext is the github context of a run; a job adds its own name, the worker its workspace.
func (s Site) GitHubContext(r *state.Run) map[string]any {
	owner, _, _ := strings.Cut(r.Repository, "/")
	return map[string]any{
		"run_id": fmt.Sprint(r.ID), "run_number": fmt.Sprint(r.Number), "run_attempt": fmt.Sprint(r.Attempt),
		"repository": r.Repository, "repository_owner": owner, "repository_id": fmt.Sprint(state.IDOf(r.Repository)),
		"workflow": r.Workflow, "event_name": r.Event(), "actor": Actor, "triggering_actor": Actor,
		"ref": r.Ref(), "ref_name": r.RefName(), "ref_type": r.RefType(), "head_ref": r.HeadRef(), "base_ref": r.BaseRef(), "sha": r.SHA(),
		"workflow_ref": r.WorkflowRef(), "workflow_sha": r.SHA(),
		"server_url": s.URL, "api_url": s.URL + "/api/v3", "graphql_url": s.URL + "/api/graphql", "event": s.Event(r),
	}
}
