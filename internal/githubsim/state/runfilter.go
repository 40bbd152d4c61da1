package state

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// RunFilter is a query for runs. GitHub's status takes conclusions too.
type RunFilter struct{ repository, status, event, branch, sha string }

// Matches reports whether the query asks for a run.
func (f RunFilter) Matches(r *Run) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return strings.EqualFold(f.repository, r.Repository) && (is(f.status, r.Status) || is(f.status, r.Conclusion)) &&
		is(f.event, r.Event()) && is(f.branch, r.HeadBranch()) && is(f.sha, r.SHA())
}

// FilterOf reads the query. What the stand-in does not look at is refused, so that no caller takes the answer for filtered.
func FilterOf(q url.Values, repository string) (RunFilter, error) {
	for _, name := range []string{"actor", "created", "check_suite_id"} {
		if q.Has(name) {
			return RunFilter{}, rest.Problem(http.StatusUnprocessableEntity, "%s is not supported by the GitHub stand-in", name)
		}
	}
	return RunFilter{repository, q.Get("status"), q.Get("event"), q.Get("branch"), q.Get("head_sha")}, nil
}
