package githubsim

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// runFilter is a query for runs. GitHub's status takes conclusions too.
type runFilter struct{ repository, status, event, branch, sha string }

func (f runFilter) matches(r *state.Run) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return strings.EqualFold(f.repository, r.Repository) && (is(f.status, r.Status) || is(f.status, r.Conclusion)) &&
		is(f.event, r.Event()) && is(f.branch, r.HeadBranch()) && is(f.sha, r.SHA())
}

// filterOf reads the query. What the stand-in does not look at is refused, so that no caller takes the answer for filtered.
func filterOf(r *http.Request) (runFilter, error) {
	q := r.URL.Query()
	for _, name := range []string{"actor", "created", "check_suite_id"} {
		if q.Has(name) {
			return runFilter{}, rest.Problem(http.StatusUnprocessableEntity, "%s is not supported by the GitHub stand-in", name)
		}
	}
	return runFilter{repositoryOf(r), q.Get("status"), q.Get("event"), q.Get("branch"), q.Get("head_sha")}, nil
}

// listRuns shows the newest run first, as GitHub does.
func (s *Server) listRuns(r *http.Request) (*rest.Answer, error) {
	filter, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	page, perPage := rest.PageOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*state.Run
	for _, one := range s.runs {
		if filter.matches(one) {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *state.Run) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	from, to, header := rest.Paginate(r, s.baseURL, len(found), page, perPage)
	list := []rest.Object{}
	for _, one := range found[from:to] {
		list = append(list, s.site().Run(one))
	}
	return &rest.Answer{Status: http.StatusOK, Header: header, Body: rest.Object{"total_count": len(found), "workflow_runs": list}}, nil
}

// attemptIn finds the run of the path as it was in the attempt of the path. Of an earlier attempt only what its jobs tell is known.
func (s *Server) attemptIn(r *http.Request) (*state.Run, error) {
	found, err := s.runIn(r)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(r.PathValue("attempt"))
	if err != nil || n < 1 || n > found.Attempt {
		return nil, rest.ErrNotFound
	}
	if n == found.Attempt {
		return found, nil
	}
	past := *found
	past.Attempt, past.Status, past.Jobs, past.Past = n, state.StatusCompleted, nil, nil
	for _, id := range slices.Concat(found.Past, found.Jobs) {
		if j := s.jobs[id]; j.Attempt == n {
			past.Jobs = append(past.Jobs, id)
			past.StartedAt, past.UpdatedAt = j.CreatedAt, j.CompletedAt
			past.Cancelled = past.Cancelled || j.Conclusion == state.ConclusionCancelled
		}
	}
	past.Conclusion = s.verdict(&past)
	return &past, nil
}

func (s *Server) getAttempt(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.attemptIn(r)
	if err != nil {
		return nil, err
	}
	return rest.OK(s.site().Run(found)), nil
}

func (s *Server) listAttemptJobs(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.attemptIn(r)
	if err != nil {
		return nil, err
	}
	return s.jobList(r, found, found.Jobs), nil
}

func (s *Server) getJob(r *http.Request) (*rest.Answer, error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	if j == nil || j.CreatedAt.IsZero() || !strings.EqualFold(s.runs[j.RunID].Repository, repositoryOf(r)) {
		return nil, rest.ErrNotFound
	}
	return rest.OK(s.site().Job(s.runs[j.RunID], j, s.groupName(j.GroupID))), nil
}
