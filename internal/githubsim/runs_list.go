package githubsim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// listRuns shows the newest run first, as GitHub does.
func (s *Server) listRuns(r *http.Request) (*rest.Answer, error) {
	filter, err := state.FilterOf(r.URL.Query(), repositoryOf(r))
	if err != nil {
		return nil, err
	}
	page, perPage := rest.PageOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*state.Run
	for _, one := range s.runs {
		if filter.Matches(one) {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *state.Run) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	if filter.Searches {
		found = found[:min(len(found), state.MaxFound)]
	}
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

// jobIn finds the job that the path of a GitHub call names, in its repository.
func (s *Server) jobIn(r *http.Request) (*state.Job, error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	j := s.jobs[id]
	if j == nil || j.CreatedAt.IsZero() || !strings.EqualFold(s.runs[j.RunID].Repository, repositoryOf(r)) {
		return nil, rest.ErrNotFound
	}
	return j, nil
}

func (s *Server) getJob(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.jobIn(r)
	if err != nil {
		return nil, err
	}
	return rest.OK(s.site().Job(s.runs[j.RunID], j, s.groupName(j.GroupID))), nil
}

// getJobLog leads to the log of a completed job. GitHub's address is good for a minute and needs no credentials.
func (s *Server) getJobLog(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.jobIn(r)
	if err != nil || j.Status != state.StatusCompleted {
		return nil, rest.ErrNotFound
	}
	return rest.Found(fmt.Sprintf("%s/_standin/jobs/%d/log", s.baseURL, j.ID)), nil
}

func (s *Server) jobLog(r *http.Request) (*rest.Answer, error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	text, err := s.logs.Text(id)
	return rest.OK(rest.Text(text)), err
}
