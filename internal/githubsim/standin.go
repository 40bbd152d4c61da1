package githubsim

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/remuda-ci/remuda/internal/githubsim/payload"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

func (s *Server) standinStart(r *http.Request) (*rest.Answer, error) {
	var q state.StartRequest
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	id, err := q.Check()
	if err != nil {
		return nil, err
	}
	var a *rest.Answer
	err = s.change(func() error {
		if s.runs[id] != nil {
			return rest.Problem(http.StatusConflict, "run %d exists already", id)
		}
		made, err := s.startRun(q.Repository, id, q.Workflow, q.Origin)
		if err == nil {
			a = rest.Created(s.runView(made))
		}
		return err
	})
	return a, err
}

func (s *Server) runView(r *state.Run) payload.RunView {
	jobs := []*state.Job{}
	for _, id := range r.Jobs {
		jobs = append(jobs, s.jobs[id])
	}
	return payload.RunViewOf(r, jobs)
}

// standinRun finds the run of a call of the stand-in's own, whatever its repository.
func (s *Server) standinRun(r *http.Request) (*state.Run, error) {
	id, err := rest.PathID(r, "run_id")
	if err != nil {
		return nil, err
	}
	if s.runs[id] == nil {
		return nil, rest.ErrNotFound
	}
	return s.runs[id], nil
}

func (s *Server) standinGet(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	found, err := s.standinRun(r)
	var v payload.RunView
	if err == nil {
		v = s.runView(found)
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for i := range v.Jobs { // outside the lock: logs are files
		if v.Jobs[i].Log, err = s.logs.Text(v.Jobs[i].ID); err != nil {
			return nil, err
		}
	}
	return rest.OK(v), nil
}

func (s *Server) changeStandinRun(r *http.Request, status int, f func(*state.Run) error) (a *rest.Answer, err error) {
	err = s.change(func() error {
		found, err := s.standinRun(r)
		if err != nil {
			return err
		}
		if err := f(found); err != nil {
			return err
		}
		a = &rest.Answer{Status: status, Body: s.runView(found)}
		return nil
	})
	return a, err
}

func (s *Server) standinCancel(r *http.Request) (*rest.Answer, error) {
	return s.changeStandinRun(r, http.StatusAccepted, s.cancelRun)
}

func (s *Server) standinApprove(r *http.Request) (*rest.Answer, error) {
	return s.changeStandinRun(r, http.StatusAccepted, s.approve)
}

func (s *Server) standinRerun(r *http.Request) (*rest.Answer, error) {
	var q struct {
		FailedOnly bool `json:"failed_only"`
	}
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	return s.changeStandinRun(r, http.StatusCreated, func(found *state.Run) error { return s.rerun(found, q.FailedOnly) })
}

func (s *Server) standinRunners(*http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []payload.RunnerView{}
	for _, r := range s.runners {
		list = append(list, payload.RunnerViewOf(r, s.online(r)))
	}
	slices.SortFunc(list, func(a, b payload.RunnerView) int { return cmp.Compare(a.ID, b.ID) })
	return rest.OK(rest.Object{"runners": list}), nil
}

func (s *Server) standinCalls(*http.Request) (*rest.Answer, error) {
	return rest.OK(rest.Object{"calls": s.calls.List()}), nil
}

func (s *Server) standinFaults(r *http.Request) (*rest.Answer, error) {
	var f rest.Fault
	if err := rest.Decode(r, &f, true); err != nil {
		return nil, err
	}
	return nil, s.faults.Add(f)
}

func (s *Server) standinFaultsEnd(*http.Request) (*rest.Answer, error) {
	s.faults.Clear()
	return nil, nil
}
