package githubsim

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/gitdata"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// runIn finds the run that the path of a GitHub call names, in its repository.
func (s *Server) runIn(r *http.Request) (*state.Run, error) {
	id, err := rest.PathID(r, "run_id")
	if err != nil {
		return nil, err
	}
	found := s.runs[id]
	if found == nil || !strings.EqualFold(found.Repository, repositoryOf(r)) {
		return nil, rest.ErrNotFound
	}
	return found, nil
}

func (s *Server) getRun(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.runIn(r)
	if err != nil {
		return nil, err
	}
	return rest.OK(s.site().Run(found)), nil
}

func (s *Server) listJobs(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.runIn(r)
	if err != nil {
		return nil, err
	}
	ids := slices.Clone(found.Jobs)
	if r.URL.Query().Get("filter") == "all" {
		ids = append(ids, found.Past...)
	}
	return s.jobList(r, found, ids), nil
}

// jobList shows the jobs that GitHub would have made by now: not those that wait for their needs.
func (s *Server) jobList(r *http.Request, of *state.Run, ids []int64) *rest.Answer {
	page, perPage := rest.PageOf(r)
	jobs := []*state.Job{}
	for _, id := range ids {
		if j := s.jobs[id]; !j.CreatedAt.IsZero() {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *state.Job) int { return cmp.Compare(a.ID, b.ID) })
	from, to, header := rest.Paginate(r, s.baseURL, len(jobs), page, perPage)
	list := []rest.Object{}
	for _, j := range jobs[from:to] {
		list = append(list, s.site().Job(of, j, s.groupName(j.GroupID)))
	}
	return &rest.Answer{Status: http.StatusOK, Header: header, Body: rest.Object{"total_count": len(jobs), "jobs": list}}
}

func (s *Server) changeRun(r *http.Request, status int, f func(*state.Run) error) (*rest.Answer, error) {
	err := s.change(func() error {
		found, err := s.runIn(r)
		if err != nil {
			return err
		}
		return f(found)
	})
	return &rest.Answer{Status: status, Body: rest.Object{}}, err
}

func (s *Server) cancel(r *http.Request) (*rest.Answer, error) {
	return s.changeRun(r, http.StatusAccepted, s.cancelRun)
}

func (s *Server) rerunAll(r *http.Request) (*rest.Answer, error) {
	return s.changeRun(r, http.StatusCreated, func(found *state.Run) error { return s.rerun(found, false) })
}

func (s *Server) rerunFailed(r *http.Request) (*rest.Answer, error) {
	return s.changeRun(r, http.StatusCreated, func(found *state.Run) error { return s.rerun(found, true) })
}

// deleteRun removes a completed run. GitHub refuses to remove another one.
func (s *Server) deleteRun(r *http.Request) (*rest.Answer, error) {
	_, err := s.changeRun(r, http.StatusNoContent, func(found *state.Run) error {
		if found.Status != state.StatusCompleted {
			return rest.Problem(http.StatusForbidden, "Could not delete the workflow run")
		}
		s.forget(found)
		return nil
	})
	return nil, err
}

// pushed starts the workflows of a branch that was made. A file that cannot run is refused, where GitHub would start a run that fails.
func (s *Server) pushed(p gitdata.Push) error {
	return s.change(func() error {
		for path, text := range p.Workflows {
			from := state.Origin{Event: "push", Ref: p.Ref, HeadBranch: strings.TrimPrefix(p.Ref, "refs/heads/"), SHA: p.SHA, Path: path}
			if _, err := s.startRun(p.Repository, 0, text, from); err != nil {
				return rest.Problem(http.StatusUnprocessableEntity, "%s: %v", path, err)
			}
		}
		return nil
	})
}
