package githubsim

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

func (s *Server) workflowObject(r *run) rest.Object {
	id := r.workflowID()
	page := s.baseURL + "/" + r.Repository + "/blob/" + branch + "/" + r.path()
	return rest.Object{
		"id": id, "node_id": fmt.Sprintf("W_%d", id), "name": r.Workflow, "path": r.path(), "state": "active",
		"created_at": rest.Time(r.CreatedAt), "updated_at": rest.Time(r.CreatedAt), "html_url": page,
		"url":       s.api("/repos/%s/actions/workflows/%d", r.Repository, id),
		"badge_url": s.baseURL + "/" + r.Repository + "/workflows/standin/badge.svg",
	}
}

func (s *Server) runObject(r *run) rest.Object {
	url := s.api("/repos/%s/actions/runs/%d", r.Repository, r.ID)
	var previous any
	if r.Attempt > 1 {
		previous = fmt.Sprintf("%s/attempts/%d", url, r.Attempt-1)
	}
	return rest.Object{
		"id": r.ID, "node_id": fmt.Sprintf("WFR_%d", r.ID), "name": r.Workflow, "display_title": r.Title, "path": r.path(),
		"head_branch": r.headBranch(), "head_sha": r.sha(), "run_number": r.Number, "run_attempt": r.Attempt, "event": r.event(),
		"status": r.Status, "conclusion": rest.OrNull(r.Conclusion), "workflow_id": r.workflowID(),
		"check_suite_id": r.ID, "check_suite_node_id": fmt.Sprintf("CS_%d", r.ID), "pull_requests": s.pullRequests(r),
		"created_at": rest.Time(r.CreatedAt), "updated_at": rest.Time(r.UpdatedAt), "run_started_at": rest.Time(r.StartedAt),
		"url": url, "html_url": fmt.Sprintf("%s/%s/actions/runs/%d", s.baseURL, r.Repository, r.ID), "jobs_url": url + "/jobs",
		"logs_url": url + "/logs", "artifacts_url": url + "/artifacts", "cancel_url": url + "/cancel", "rerun_url": url + "/rerun",
		"check_suite_url":      s.api("/repos/%s/check-suites/%d", r.Repository, r.ID),
		"workflow_url":         s.api("/repos/%s/actions/workflows/%d", r.Repository, r.workflowID()),
		"previous_attempt_url": previous, "referenced_workflows": []rest.Object{},
		"actor": s.userObject(actor, "User"), "triggering_actor": s.userObject(actor, "User"),
		"head_commit": rest.Object{
			"id": r.sha(), "tree_id": r.sha(), "message": "stand-in", "timestamp": rest.Time(r.CreatedAt),
			"author":    rest.Object{"name": actor, "email": actorEmail},
			"committer": rest.Object{"name": actor, "email": actorEmail},
		},
		"repository": s.minimalRepository(r.Repository, false), "head_repository": s.minimalRepository(r.headRepository(), r.fromFork()),
	}
}

// pullRequests are those of the run. For one from a fork GitHub shows none.
func (s *Server) pullRequests(r *run) []rest.Object {
	if !r.ofPullRequest() || r.fromFork() {
		return []rest.Object{}
	}
	_, name, _ := strings.Cut(r.Repository, "/")
	end := func(ref string) rest.Object {
		return rest.Object{"ref": ref, "sha": r.sha(), "repo": rest.Object{
			"id": idOf(r.Repository), "name": name, "url": s.api("/repos/%s", r.Repository),
		}}
	}
	return []rest.Object{{
		"id": r.ID, "number": pullNumber, "url": s.api("/repos/%s/pulls/%d", r.Repository, pullNumber),
		"head": end(r.headBranch()), "base": end(branch),
	}}
}

func (s *Server) jobObject(r *run, j *job) rest.Object {
	url := s.api("/repos/%s/actions/jobs/%d", r.Repository, j.ID)
	o := rest.Object{
		"id": j.ID, "run_id": j.RunID, "run_url": s.api("/repos/%s/actions/runs/%d", r.Repository, r.ID), "run_attempt": j.Attempt,
		"node_id": fmt.Sprintf("CR_%d", j.ID), "head_branch": r.headBranch(), "head_sha": r.sha(), "url": url,
		"html_url": fmt.Sprintf("%s/%s/actions/runs/%d/job/%d", s.baseURL, r.Repository, r.ID, j.ID),
		"status":   j.Status, "conclusion": rest.OrNull(j.Conclusion), "created_at": rest.Time(j.CreatedAt), "completed_at": rest.Time(j.CompletedAt),
		"started_at": rest.Time(firstSet(j.StartedAt, j.CreatedAt)), "name": j.Name, "workflow_name": r.Workflow, "labels": j.Labels,
		"check_run_url": s.api("/repos/%s/check-runs/%d", r.Repository, j.ID), "steps": j.Progress,
		"runner_id": nil, "runner_name": nil, "runner_group_id": nil, "runner_group_name": nil,
	}
	if j.Progress == nil {
		o["steps"] = []protocol.StepState{}
	}
	if !j.StartedAt.IsZero() {
		o["runner_id"], o["runner_name"], o["runner_group_id"], o["runner_group_name"] = j.RunnerID, j.RunnerName, j.GroupID, s.groupName(j.GroupID)
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

// githubContext is the github context of a run; a job adds its own name, the worker its workspace.
func (s *Server) githubContext(r *run) map[string]any {
	owner, _, _ := strings.Cut(r.Repository, "/")
	return map[string]any{
		"run_id": fmt.Sprint(r.ID), "run_number": fmt.Sprint(r.Number), "run_attempt": fmt.Sprint(r.Attempt),
		"repository": r.Repository, "repository_owner": owner, "repository_id": fmt.Sprint(idOf(r.Repository)),
		"workflow": r.Workflow, "event_name": r.event(), "actor": actor, "triggering_actor": actor,
		"ref": r.ref(), "ref_name": r.refName(), "ref_type": r.refType(), "head_ref": r.headRef(), "base_ref": r.baseRef(), "sha": r.sha(),
		"workflow_ref": r.workflowRef(), "workflow_sha": r.sha(),
		"server_url": s.baseURL, "api_url": s.baseURL + "/api/v3", "graphql_url": s.baseURL + "/api/graphql",
	}
}
