package githubsim

import (
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow"
)

// cancelJob ends a job that no runner has begun, and asks the runner of one that runs.
func (s *Server) cancelJob(j *state.Job) {
	switch j.Status {
	case state.StatusPending, state.StatusWaiting, state.StatusQueued:
		s.finish(j, state.ConclusionCancelled)
	case state.StatusInProgress:
		if j.CancelledAt.IsZero() {
			j.CancelledAt = s.now()
			s.put(state.KindJob, j.ID, j)
		}
		if r := s.runners[j.RunnerID]; r != nil {
			r.Notify()
		}
	}
}

func (s *Server) cancelRun(r *state.Run) error {
	if r.Status == state.StatusCompleted {
		return rest.Problem(409, "Cannot cancel a workflow run that is completed.")
	}
	r.Cancelled = true
	for _, id := range r.Jobs {
		if j := s.jobs[id]; !j.Always { // its condition holds for a cancelled run, too
			s.cancelJob(j)
		}
	}
	s.schedule(r)
	return nil
}

// rerun starts the next attempt: of every job, or of those that did not succeed and those that need them.
func (s *Server) rerun(r *state.Run, failedOnly bool) error {
	if r.Status != state.StatusCompleted {
		return rest.Problem(403, "This workflow run is already running.")
	}
	w, err := workflow.Parse([]byte(r.Source))
	if err != nil {
		return refused(err)
	}
	again := s.toRerun(r, failedOnly)
	if len(again) == 0 {
		return rest.Problem(403, "This workflow run has no failed jobs to re-run.")
	}
	r.Attempt++
	fresh, err := s.expand(r, w)
	if err != nil {
		r.Attempt--
		return err
	}
	for i, id := range r.Jobs { // both lists are in the order of the file and its matrices
		if !again[id] {
			continue
		}
		r.Past = append(r.Past, id)
		r.Jobs[i] = fresh[i].ID
		s.jobs[fresh[i].ID] = fresh[i]
	}
	now := s.now()
	r.Status, r.Conclusion, r.Cancelled, r.StartedAt, r.UpdatedAt = state.StatusQueued, "", false, now, now
	s.log.Info("run started again", "run", r.ID, "attempt", r.Attempt, "jobs", len(again))
	s.emitRun(r, "requested")
	s.schedule(r)
	return nil
}

func (s *Server) toRerun(r *state.Run, failedOnly bool) map[int64]bool {
	again, keys := map[int64]bool{}, map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, id := range r.Jobs {
			j := s.jobs[id]
			hit := !failedOnly || j.Conclusion != state.ConclusionSuccess ||
				slices.ContainsFunc(j.Needs, func(n string) bool { return keys[strings.ToLower(n)] })
			if hit && !again[id] {
				again[id], keys[strings.ToLower(j.Key)], grown = true, true, true
			}
		}
	}
	return again
}
