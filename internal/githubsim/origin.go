package githubsim

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// pullNumber is the number of every pull request.
const pullNumber = 1

// origin is where a run comes from. What is empty is as for a workflow that somebody dispatched on the default branch.
type origin struct {
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

// check says what of it GitHub never has.
func (o origin) check() error {
	invalid := func(name, value string) error {
		return rest.Problem(http.StatusUnprocessableEntity, "%s %q is none that GitHub has", name, value)
	}
	switch {
	case o.Event != "" && !eventPattern.MatchString(o.Event):
		return invalid("event", o.Event)
	case o.HeadRepository != "" && !isRepository(o.HeadRepository):
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

func isRepository(text string) bool {
	owner, name, found := strings.Cut(text, "/")
	return found && owner != "" && name != "" && !strings.ContainsAny(text, " \\") && !strings.Contains(name, "/") &&
		!slices.Contains([]string{".", ".."}, name)
}

func (r *run) event() string          { return cmp.Or(r.Origin.Event, "workflow_dispatch") }
func (r *run) headRepository() string { return cmp.Or(r.Origin.HeadRepository, r.Repository) }
func (r *run) fromFork() bool         { return !strings.EqualFold(r.headRepository(), r.Repository) }
func (r *run) sha() string            { return cmp.Or(r.Origin.SHA, shaOf(r.headRepository())) }
func (r *run) path() string           { return cmp.Or(r.Origin.Path, workflowPath) }
func (r *run) workflowID() int64      { return idOf(r.Repository + r.Workflow) }

func (r *run) ofPullRequest() bool { return strings.HasPrefix(r.event(), "pull_request") }

// ref is what the run's code is at: for a pull request the merge that GitHub made of it, but for pull_request_target, which runs
// on the base.
func (r *run) ref() string {
	switch {
	case r.Origin.Ref != "":
		return r.Origin.Ref
	case r.event() == "pull_request":
		return "refs/pull/1/merge"
	case r.ofPullRequest() || r.Origin.HeadBranch == "":
		return "refs/heads/" + branch
	}
	return "refs/heads/" + r.Origin.HeadBranch
}

func (r *run) refName() string {
	for _, prefix := range []string{"refs/heads/", "refs/tags/", "refs/pull/"} {
		if name, found := strings.CutPrefix(r.ref(), prefix); found {
			return name
		}
	}
	return r.ref()
}

func (r *run) refType() string {
	if strings.HasPrefix(r.ref(), "refs/tags/") {
		return "tag"
	}
	return "branch"
}

func (r *run) headBranch() string {
	switch {
	case r.Origin.HeadBranch != "":
		return r.Origin.HeadBranch
	case r.ofPullRequest():
		return "patch-1"
	}
	return r.refName()
}

// headRef and baseRef are set for pull requests only.
func (r *run) headRef() string {
	if r.ofPullRequest() {
		return r.headBranch()
	}
	return ""
}

func (r *run) baseRef() string {
	if r.ofPullRequest() {
		return branch
	}
	return ""
}

func (r *run) workflowRef() string { return r.Repository + "/" + r.path() + "@" + r.ref() }
