package policy

import (
	"fmt"
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
)

// WritingEvents are the events of GitHub whose runs are of a commit that is on a branch of the repository, put there by people who may write to
// that branch. The runs of all other events have, or may be made to run, code that is on none: a pull request (pull_request, pull_request_target),
// what another run left behind (workflow_run), or what a comment says (issue_comment). An event that GitHub adds is not among them.
var WritingEvents = []string{"push", "schedule", "workflow_dispatch", "merge_group"}

// KeepsCaches says whether the view that a run had of a cache becomes the cache, and why, in a sentence that goes into the history. from are the
// patterns of the cache; none: the branch must be protected. branch is what GitHub says of the run's branch and commit; nil: that is not known
// yet, and the answer is whether it matters.
//
// The run's head_branch is only a name. The pull request of a fork may come from a branch called main, and a tag may be called main too. So the
// event must be one of a branch, the commit must be of the repository itself, and it must be on the branch.
func KeepsCaches(run cache.Source, from []string, branch *cache.Branch) (bool, string) {
	name := line.First(run.Branch)
	switch {
	case !slices.Contains(WritingEvents, run.Event):
		return false, fmt.Sprintf("a run by the event %.40q may not write", run.Event)
	case run.RepositoryID == 0 || run.HeadRepositoryID != run.RepositoryID:
		return false, "the run's commit is not known to be of the repository itself"
	case run.Branch == "" || run.SHA == "":
		return false, "GitHub names no branch and commit of the run"
	case len(from) > 0 && !matchesAny(from, run.Branch):
		return false, fmt.Sprintf("the branch %.80q matches none of `from`", name)
	case branch == nil:
		return true, ""
	case !branch.Has:
		return false, fmt.Sprintf("the run's commit is not on the branch %.80q", name)
	case len(from) == 0 && !branch.Protected:
		return false, fmt.Sprintf("the branch %.80q is not protected", name)
	case len(from) == 0:
		return true, fmt.Sprintf("the branch %.80q is protected", name)
	}
	return true, fmt.Sprintf("the branch %.80q matches `from`", name)
}
