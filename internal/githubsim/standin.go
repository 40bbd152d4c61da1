package githubsim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

type startRequest struct {
	Repository string      `json:"repository"`
	RunID      json.Number `json:"run_id"`
	Workflow   string      `json:"workflow"`
	state.Origin
}

func (q startRequest) check() (id int64, err error) {
	if !state.IsRepository(q.Repository) {
		return 0, rest.Problem(http.StatusUnprocessableEntity, "repository %q is not of the form owner/name", q.Repository)
	}
	if err := q.Origin.Check(); err != nil {
		return 0, err
	}
	if q.RunID != "" {
		if id, err = strconv.ParseInt(string(q.RunID), 10, 64); err != nil || id <= 0 {
			return 0, rest.Problem(http.StatusUnprocessableEntity, "run_id %q is not a positive number", q.RunID)
		}
	}
	if q.Workflow == "" {
		return 0, rest.Problem(http.StatusUnprocessableEntity, "workflow is empty: it is the text of a workflow file")
	}
	return id, nil
}

func (s *Server) standinStart(r *http.Request) (*rest.Answer, error) {
	var q startRequest
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	id, err := q.check()
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

type runView struct {
	ID         int64     `json:"id"`
	RunID      string    `json:"run_id"` // as a text, the form in which Provision takes it
	Repository string    `json:"repository"`
	RunAttempt int       `json:"run_attempt"`
	Status     string    `json:"status"`
	Conclusion any       `json:"conclusion"`
	Jobs       []jobView `json:"jobs"`
}

type jobView struct {
	ID          int64    `json:"id"`
	Name        string   `json:"name"`
	RunAttempt  int      `json:"run_attempt"`
	Labels      []string `json:"labels"`
	Status      string   `json:"status"`
	Conclusion  any      `json:"conclusion"`
	Runner      any      `json:"runner"`
	StartedAt   any      `json:"started_at"`
	CompletedAt any      `json:"completed_at"`
	Log         string   `json:"log"`
}

func (s *Server) runView(r *state.Run) runView {
	v := runView{
		ID: r.ID, RunID: fmt.Sprint(r.ID), Repository: r.Repository, RunAttempt: r.Attempt, Status: r.Status,
		Conclusion: rest.OrNull(r.Conclusion), Jobs: []jobView{},
	}
	for _, id := range r.Jobs {
		j := s.jobs[id]
		jv := jobView{
			ID: j.ID, Name: j.Name, RunAttempt: j.Attempt, Labels: j.Labels, Status: j.Status, Conclusion: rest.OrNull(j.Conclusion),
			StartedAt: rest.Time(j.StartedAt), CompletedAt: rest.Time(j.CompletedAt),
		}
		if !j.StartedAt.IsZero() {
			jv.Runner = rest.OrNull(j.RunnerName)
		}
		v.Jobs = append(v.Jobs, jv)
	}
	return v
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
	var v runView
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

type runnerView struct {
	ID     int64    `json:"id"`
	Name   string   `json:"name"`
	Scope  string   `json:"scope"`
	Labels []string `json:"labels"`
	Status string   `json:"status"`
	Busy   bool     `json:"busy"` // at once, unlike in GitHub's answers
	// Polling says that a listener waits for a message.
	Polling bool `json:"polling"`
}

func (s *Server) standinRunners(*http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []runnerView{}
	for _, r := range s.runners {
		v := runnerView{ID: r.ID, Name: r.Name, Scope: r.Scope, Status: "offline", Busy: r.JobID != 0, Polling: r.Polls > 0, Labels: []string{}}
		if s.online(r) {
			v.Status = "online"
		}
		for _, l := range r.Labels {
			v.Labels = append(v.Labels, l.Name)
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b runnerView) int { return cmp.Compare(a.ID, b.ID) })
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
