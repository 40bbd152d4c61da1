package payload

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// RunView is a run as the stand-in's own calls show it.
type RunView struct {
	ID         int64     `json:"id"`
	RunID      string    `json:"run_id"` // as a text, the form in which Provision takes it
	Repository string    `json:"repository"`
	RunAttempt int       `json:"run_attempt"`
	Status     string    `json:"status"`
	Conclusion any       `json:"conclusion"`
	Jobs       []JobView `json:"jobs"`
}

// JobView is a job of a RunView.
type JobView struct {
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

// RunViewOf is the view of a run and its jobs, without their logs.
func RunViewOf(r *state.Run, jobs []*state.Job) RunView {
	v := RunView{
		ID: r.ID, RunID: fmt.Sprint(r.ID), Repository: r.Repository, RunAttempt: r.Attempt, Status: r.Status,
		Conclusion: rest.OrNull(r.Conclusion), Jobs: []JobView{},
	}
	for _, j := range jobs {
		jv := JobView{
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

// RunnerView is a registration as the stand-in's own calls show it.
type RunnerView struct {
	ID     int64    `json:"id"`
	Name   string   `json:"name"`
	Scope  string   `json:"scope"`
	Labels []string `json:"labels"`
	Status string   `json:"status"`
	Busy   bool     `json:"busy"` // at once, unlike in GitHub's answers
	// Polling says that a listener waits for a message.
	Polling bool `json:"polling"`
}

// RunnerViewOf is the view of a registration.
func RunnerViewOf(r *state.Runner, online bool) RunnerView {
	v := RunnerView{ID: r.ID, Name: r.Name, Scope: r.Scope, Status: "offline", Busy: r.JobID != 0, Polling: r.Polls > 0, Labels: []string{}}
	if online {
		v.Status = "online"
	}
	for _, l := range r.Labels {
		v.Labels = append(v.Labels, l.Name)
	}
	return v
}
