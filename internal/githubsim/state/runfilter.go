package state

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// MaxFound is how many runs GitHub lists for a query with any of actor, branch, check_suite_id, created, event, head_sha and status, whatever the
// page ("List workflow runs for a repository"). It does not say whether total_count is more then, so it is not here.
const MaxFound = 1000

// RunFilter is a query for runs. GitHub's status takes conclusions too.
type RunFilter struct {
	repository, status, event, branch, sha string
	// Searches reports whether it has any parameter but the repository. Then GitHub lists MaxFound runs at most.
	Searches bool
	// from and until bound when it was created, both included; zero: they do not.
	from, until time.Time
}

// Matches reports whether the query asks for a run.
func (f RunFilter) Matches(r *Run) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return strings.EqualFold(f.repository, r.Repository) && (is(f.status, r.Status) || is(f.status, r.Conclusion)) &&
		is(f.event, r.Event()) && is(f.branch, r.HeadBranch()) && is(f.sha, r.SHA()) &&
		!r.CreatedAt.Truncate(time.Second).Before(f.from) && (f.until.IsZero() || !r.CreatedAt.Truncate(time.Second).After(f.until))
}

// FilterOf reads the query. What the stand-in does not look at is refused, so that no caller takes the answer for filtered.
func FilterOf(q url.Values, repository string) (RunFilter, error) {
	for _, name := range []string{"actor", "check_suite_id"} {
		if q.Has(name) {
			return RunFilter{}, rest.Problem(http.StatusUnprocessableEntity, "%s is not supported by the GitHub stand-in", name)
		}
	}
	f := RunFilter{repository: repository, status: q.Get("status"), event: q.Get("event"), branch: q.Get("branch"), sha: q.Get("head_sha")}
	f.Searches = slices.ContainsFunc([]string{"status", "event", "branch", "head_sha", "created"}, q.Has)
	if !q.Has("created") {
		return f, nil
	}
	return f, f.created(q.Get("created"))
}

// created reads a range of times as GitHub's search has it, such as 2026-11-01T00:00:00Z..2026-11-02T00:00:00Z. Of the other forms the
// stand-in knows >= alone.
func (f *RunFilter) created(text string) (err error) {
	from, until, bounded := strings.Cut(text, "..")
	if !bounded {
		from = strings.TrimPrefix(text, ">=")
		bounded = from == text // which is another form
	}
	if f.from, err = time.Parse(time.RFC3339, from); err == nil && bounded {
		f.until, err = time.Parse(time.RFC3339, until)
	}
	if err != nil {
		return rest.Problem(http.StatusUnprocessableEntity, "created=%s is not supported by the GitHub stand-in", text)
	}
	return nil
}
