package state

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// What every run has in common.
const (
	workflowPath = ".github/workflows/standin.yml" // unless its origin names another file
	Branch       = "main"                          // the default branch
	PullNumber   = 1                               // of every pull request
)

// Origin is where a run comes from. An empty field is as for a workflow dispatched by hand on the default branch.
type Origin struct {
	Event          string `json:"event"`           // default: workflow_dispatch
	HeadRepository string `json:"head_repository"` // another one than the run's is a fork of it
	Ref            string `json:"ref"`             // such as refs/heads/main, refs/tags/v1 or refs/pull/1/merge
	HeadBranch     string `json:"head_branch"`
	SHA            string `json:"sha"`
	Path           string `json:"path"` // of the workflow file
}

var (
	shaPattern   = regexp.MustCompile(`^[0-9a-f]{40}$`)
	eventPattern = regexp.MustCompile(`^[a-z_]+$`)
)

// Check says what of it GitHub never has.
func (o Origin) Check() error {
	invalid := func(name, value string) error {
		return rest.Problem(http.StatusUnprocessableEntity, "%s %q is none that GitHub has", name, value)
	}
	switch {
	case o.Event != "" && !eventPattern.MatchString(o.Event):
		return invalid("event", o.Event)
	case o.HeadRepository != "" && !IsRepository(o.HeadRepository):
		return invalid("head_repository", o.HeadRepository)
	case o.Ref != "" && !strings.HasPrefix(o.Ref, "refs/"):
		return invalid("ref", o.Ref)
	case o.SHA != "" && !shaPattern.MatchString(o.SHA):
		return invalid("sha", o.SHA)
	case o.Path != "" && !strings.HasPrefix(o.Path, ".github/workflows/"):
		return invalid("path", o.Path)
	}
	return nil
}

func IsRepository(text string) bool {
	owner, name, found := strings.Cut(text, "/")
	return found && owner != "" && name != "" && !strings.ContainsAny(text, " \\") && !strings.Contains(name, "/") &&
		!slices.Contains([]string{".", ".."}, name)
}

func (r *Run) Event() string          { return cmp.Or(r.Origin.Event, "workflow_dispatch") }
func (r *Run) HeadRepository() string { return cmp.Or(r.Origin.HeadRepository, r.Repository) }
func (r *Run) FromFork() bool         { return !strings.EqualFold(r.HeadRepository(), r.Repository) }
func (r *Run) SHA() string            { return cmp.Or(r.Origin.SHA, shaOf(r.HeadRepository())) }
func (r *Run) Path() string           { return cmp.Or(r.Origin.Path, workflowPath) }
func (r *Run) WorkflowID() int64      { return IDOf(r.Repository + r.Workflow) }

func (r *Run) OfPullRequest() bool { return strings.HasPrefix(r.Event(), "pull_request") }

// Ref is what the run's code is at: for a pull request the merge that GitHub made of it, except for pull_request_target, which runs
// on the base.
func (r *Run) Ref() string {
	switch {
	case r.Origin.Ref != "":
		return r.Origin.Ref
	case r.Event() == "pull_request":
		return "refs/pull/1/merge"
	case r.OfPullRequest() || r.Origin.HeadBranch == "":
		return "refs/heads/" + Branch
	}
	return "refs/heads/" + r.Origin.HeadBranch
}

func (r *Run) RefName() string {
	for _, prefix := range []string{"refs/heads/", "refs/tags/", "refs/pull/"} {
		if name, found := strings.CutPrefix(r.Ref(), prefix); found {
			return name
		}
	}
	return r.Ref()
}

func (r *Run) RefType() string {
	if strings.HasPrefix(r.Ref(), "refs/tags/") {
		return "tag"
	}
	return "branch"
}

func (r *Run) HeadBranch() string {
	switch {
	case r.Origin.HeadBranch != "":
		return r.Origin.HeadBranch
	case r.OfPullRequest():
		return "patch-1"
	}
	return r.RefName()
}

// HeadRef and baseRef are set for pull requests only.
func (r *Run) HeadRef() string {
	if r.OfPullRequest() {
		return r.HeadBranch()
	}
	return ""
}

func (r *Run) BaseRef() string {
	if r.OfPullRequest() {
		return Branch
	}
	return ""
}

func (r *Run) WorkflowRef() string { return r.Repository + "/" + r.Path() + "@" + r.Ref() }
