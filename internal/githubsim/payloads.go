package githubsim

import (
	"crypto/sha1"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

// What every run of the stand-in has in common.
const (
	workflowPath = ".github/workflows/standin.yml"
	branch       = "main"
	actor        = "remuda-standin"
	groupID      = 1
	groupName    = "Default"
)

// object is a JSON object in the shape that GitHub's OpenAPI description gives it.
type object map[string]any

// idOf is a stable id for something the stand-in has no table of: a repository, a user.
func idOf(name string) int64 {
	h := fnv.New32a()
	h.Write([]byte(strings.ToLower(name)))
	return int64(h.Sum32()%1_000_000_000) + 1
}

// shaOf is the commit that a repository is at.
func shaOf(repository string) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(strings.ToLower(repository))))
}

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (s *Server) api(format string, args ...any) string {
	return s.baseURL + "/api/v3" + fmt.Sprintf(format, args...)
}

func (s *Server) runnerObject(r *runner) object {
	status := "offline"
	if s.online(r) {
		status = "online"
	}
	return object{
		"id": r.ID, "runner_group_id": groupID, "name": r.Name, "os": "linux", "status": status, "busy": r.JobID != 0,
		"ephemeral": r.Ephemeral, "labels": labelObjects(r.Labels),
	}
}

func labelObjects(labels []label) []object {
	out := []object{}
	for _, l := range labels {
		out = append(out, object{"id": l.ID, "name": l.Name, "type": l.Type})
	}
	return out
}

func (s *Server) userObject(login, kind string) object {
	return object{
		"login": login, "id": idOf(login), "node_id": fmt.Sprintf("U_%d", idOf(login)), "type": kind, "site_admin": false,
		"url": s.api("/users/%s", login), "html_url": s.baseURL + "/" + login,
	}
}

func (s *Server) repositoryObject(repository string) object {
	owner, name, _ := strings.Cut(repository, "/")
	return object{
		"id": idOf(repository), "node_id": fmt.Sprintf("R_%d", idOf(repository)), "name": name, "full_name": repository, "private": true,
		"owner": s.userObject(owner, "Organization"), "html_url": s.baseURL + "/" + repository, "fork": false,
		"url": s.api("/repos/%s", repository), "default_branch": branch,
	}
}

func (s *Server) organizationObject(repository string) object {
	owner, _, _ := strings.Cut(repository, "/")
	return object{"login": owner, "id": idOf(owner), "node_id": fmt.Sprintf("O_%d", idOf(owner)), "url": s.api("/orgs/%s", owner)}
}

func (s *Server) workflowObject(r *run) object {
	return object{
		"id": idOf(r.Repository + r.Workflow), "node_id": fmt.Sprintf("W_%d", idOf(r.Repository+r.Workflow)), "name": r.Workflow,
		"path": workflowPath, "state": "active", "created_at": stamp(r.CreatedAt), "updated_at": stamp(r.CreatedAt),
		"url":      s.api("/repos/%s/actions/workflows/%d", r.Repository, idOf(r.Repository+r.Workflow)),
		"html_url": s.baseURL + "/" + r.Repository + "/blob/" + branch + "/" + workflowPath,
	}
}

func (s *Server) runObject(r *run) object {
	url := s.api("/repos/%s/actions/runs/%d", r.Repository, r.ID)
	var previous any
	if r.Attempt > 1 {
		previous = fmt.Sprintf("%s/attempts/%d", url, r.Attempt-1)
	}
	return object{
		"id": r.ID, "node_id": fmt.Sprintf("WFR_%d", r.ID), "name": r.Workflow, "display_title": r.Title, "path": workflowPath,
		"head_branch": branch, "head_sha": shaOf(r.Repository), "run_number": r.Number, "run_attempt": r.Attempt, "event": "workflow_dispatch",
		"status": r.Status, "conclusion": orNull(r.Conclusion), "workflow_id": idOf(r.Repository + r.Workflow),
		"check_suite_id": r.ID, "check_suite_node_id": fmt.Sprintf("CS_%d", r.ID), "pull_requests": []object{},
		"created_at": stamp(r.CreatedAt), "updated_at": stamp(r.UpdatedAt), "run_started_at": stamp(r.StartedAt),
		"url": url, "html_url": fmt.Sprintf("%s/%s/actions/runs/%d", s.baseURL, r.Repository, r.ID), "jobs_url": url + "/jobs",
		"logs_url": url + "/logs", "artifacts_url": url + "/artifacts", "cancel_url": url + "/cancel", "rerun_url": url + "/rerun",
		"check_suite_url":      s.api("/repos/%s/check-suites/%d", r.Repository, r.ID),
		"workflow_url":         s.api("/repos/%s/actions/workflows/%d", r.Repository, idOf(r.Repository+r.Workflow)),
		"previous_attempt_url": previous, "referenced_workflows": []object{},
		"actor": s.userObject(actor, "User"), "triggering_actor": s.userObject(actor, "User"),
		"head_commit": object{
			"id": shaOf(r.Repository), "tree_id": shaOf(r.Repository), "message": "stand-in", "timestamp": stamp(r.CreatedAt),
			"author":    object{"name": actor, "email": actor + "@localhost"},
			"committer": object{"name": actor, "email": actor + "@localhost"},
		},
		"repository": s.repositoryObject(r.Repository), "head_repository": s.repositoryObject(r.Repository),
	}
}

func (s *Server) jobObject(r *run, j *job) object {
	url := s.api("/repos/%s/actions/jobs/%d", r.Repository, j.ID)
	o := object{
		"id": j.ID, "run_id": j.RunID, "run_url": s.api("/repos/%s/actions/runs/%d", r.Repository, r.ID), "run_attempt": j.Attempt,
		"node_id": fmt.Sprintf("CR_%d", j.ID), "head_branch": branch, "head_sha": shaOf(r.Repository), "url": url,
		"html_url": fmt.Sprintf("%s/%s/actions/runs/%d/job/%d", s.baseURL, r.Repository, r.ID, j.ID),
		"status":   j.Status, "conclusion": orNull(j.Conclusion), "created_at": stamp(j.CreatedAt), "completed_at": stamp(j.CompletedAt),
		"started_at": stamp(firstSet(j.StartedAt, j.CreatedAt)), "name": j.Name, "workflow_name": r.Workflow, "labels": j.Labels,
		"check_run_url": s.api("/repos/%s/check-runs/%d", r.Repository, j.ID), "steps": j.Progress,
		"runner_id": nil, "runner_name": nil, "runner_group_id": nil, "runner_group_name": nil,
	}
	if j.Progress == nil {
		o["steps"] = []protocol.StepState{}
	}
	if !j.StartedAt.IsZero() {
		o["runner_id"], o["runner_name"], o["runner_group_id"], o["runner_group_name"] = j.RunnerID, j.RunnerName, groupID, groupName
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
		"workflow": r.Workflow, "event_name": "workflow_dispatch", "actor": actor, "triggering_actor": actor,
		"ref": "refs/heads/" + branch, "ref_name": branch, "ref_type": "branch", "head_ref": "", "base_ref": "", "sha": shaOf(r.Repository),
		"server_url": s.baseURL, "api_url": s.baseURL + "/api/v3", "graphql_url": s.baseURL + "/api/graphql",
	}
}
