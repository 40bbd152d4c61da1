package payload

import (
	"fmt"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// Event is the payload of the event that started a run: its github.event, and the file at GITHUB_EVENT_PATH. It has what GitHub's
// has of accounts, repositories, the ref and the pull request, as far as jobs use to read it.
func (s Site) Event(r *state.Run) rest.Object {
	owner, _, _ := strings.Cut(r.Repository, "/")
	o := rest.Object{
		"repository": s.Repository(r.Repository), "organization": s.Organization(owner), "sender": s.User(Actor, "User"),
	}
	switch {
	case r.OfPullRequest():
		o["action"], o["number"], o["pull_request"] = "synchronize", state.PullNumber, s.pullRequest(r)
	case r.Event() == "workflow_dispatch":
		o["inputs"], o["ref"], o["workflow"] = nil, r.Ref(), r.Path()
	default:
		o["ref"] = r.Ref()
	}
	return o
}

// pullRequest is the pull request of a run as the payload of its events has it. The head says from which repository the commit comes.
func (s Site) pullRequest(r *state.Run) rest.Object {
	end := func(repository, ref, sha string, fork bool) rest.Object {
		owner, _, _ := strings.Cut(repository, "/")
		o := s.Repository(repository)
		o["fork"] = fork
		return rest.Object{"label": owner + ":" + ref, "ref": ref, "sha": sha, "user": s.User(owner, "Organization"), "repo": o}
	}
	url := s.API("/repos/%s/pulls/%d", r.Repository, state.PullNumber)
	return rest.Object{
		"id": r.ID, "node_id": fmt.Sprintf("PR_%d", r.ID), "number": state.PullNumber, "state": "open", "locked": false, "title": r.Title,
		"user": s.User(Actor, "User"), "body": nil, "url": url, "draft": false, "merged": false,
		"html_url":   fmt.Sprintf("%s/%s/pull/%d", s.URL, r.Repository, state.PullNumber),
		"created_at": rest.Time(r.CreatedAt), "updated_at": rest.Time(r.UpdatedAt),
		"head": end(r.HeadRepository(), r.HeadBranch(), r.SHA(), r.FromFork()), "base": end(r.Repository, state.Branch, r.SHA(), false),
	}
}
