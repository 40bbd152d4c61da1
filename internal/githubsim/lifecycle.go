package githubsim

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow"
)

// First ids of runs and jobs: beyond 32 bits, as GitHub's are, so that an int32 cannot hold one.
const (
	firstRunID = 9_000_000_001
	firstJobID = 30_000_000_001
)

// maxRuns is how many runs are kept. Beyond it the oldest completed ones are forgotten, so that the state stays small.
const maxRuns = 2000

// startRun makes a run and its jobs.
func (s *Server) startRun(repository string, id int64, source string, from state.Origin) (*state.Run, error) {
	w, err := workflow.Parse([]byte(source))
	if err != nil {
		return nil, refused(err)
	}
	if id == 0 {
		id = s.nextID("run", firstRunID)
	}
	now := s.now()
	r := &state.Run{
		ID: id, Repository: repository, Origin: from, Number: int(s.nextID("number "+strings.ToLower(repository), 1)), Attempt: 1, Workflow: w.Name,
		Source: source, Status: state.StatusQueued, CreatedAt: now, StartedAt: now, UpdatedAt: now,
	}
	if r.Workflow == "" {
		r.Workflow = r.Path()
	}
	if r.Title, err = w.RunName.Render(map[string]any{"github": s.site().GitHubContext(r)}); err != nil {
		return nil, refused(err)
	}
	r.Title = cmp.Or(r.Title, r.Workflow)
	jobs, err := s.expand(r, w)
	if err != nil {
		return nil, err
	}
	s.forgetOldRuns()
	s.runs[r.ID] = r
	for _, j := range jobs {
		s.jobs[j.ID] = j
		r.Jobs = append(r.Jobs, j.ID)
	}
	s.log.Info("run started", "run", r.ID, "repository", repository, "jobs", len(jobs))
	s.emitRun(r, "requested")
	s.schedule(r)
	return r, nil
}

// expand makes the jobs of the run's present attempt.
func (s *Server) expand(r *state.Run, w *workflow.Workflow) ([]*state.Job, error) {
	plans, err := w.Expand(s.site().GitHubContext(r))
	if err != nil {
		return nil, refused(err)
	}
	var out []*state.Job
	for _, p := range plans {
		def := w.Jobs[slices.IndexFunc(w.Jobs, func(j workflow.Job) bool { return j.ID == p.Job })]
		out = append(out, &state.Job{
			ID: s.nextID("job", firstJobID), RunID: r.ID, Attempt: r.Attempt, Key: p.Job, Name: p.Name, Labels: p.Labels,
			Needs: def.Needs, FailFast: def.FailFast, MaxParallel: def.MaxParallel, Always: def.Always, Matrix: p.Matrix, Env: p.Env, Steps: p.Steps,
			IDToken: def.IDToken && s.mayHaveIDToken(r), Status: state.StatusPending, Environment: p.Environment, Group: p.Group,
		})
	}
	return out, nil
}

func (s *Server) forgetOldRuns() {
	if len(s.runs) < s.maxRuns {
		return
	}
	var oldest *state.Run
	for _, r := range s.runs {
		if r.Status == state.StatusCompleted && (oldest == nil || r.UpdatedAt.Before(oldest.UpdatedAt)) {
			oldest = r
		}
	}
	if oldest != nil {
		s.forget(oldest)
	}
}

// forget removes a completed run with its jobs and their logs.
func (s *Server) forget(r *state.Run) {
	for _, id := range slices.Concat(r.Jobs, r.Past) {
		delete(s.jobs, id)
		s.put(state.KindJob, id, nil)
		if err := s.logs.Remove(id); err != nil {
			s.log.Warn("cannot remove log", "job", id, "error", err)
		}
	}
	delete(s.runs, r.ID)
	s.put(state.KindRun, r.ID, nil)
	s.forgetChecks(r.Repository, r.SHA())
}

// schedule moves every job of the run as far as it can go without a runner, and the run with them. It settles in as many
// rounds as the longest chain of needs.
func (s *Server) schedule(r *state.Run) {
	for moved := true; moved; {
		moved = false
		for _, id := range r.Jobs {
			j := s.jobs[id]
			if j.Status != state.StatusPending {
				continue
			}
			switch ready, failed := s.needs(r, j); {
			case failed && !j.Always:
				s.finish(j, state.ConclusionSkipped)
				moved = true
			case ready && s.mayRun(r, j):
				s.admit(r, j)
			}
		}
	}
	s.settle(r)
}

// admit makes a job whose needs are met, and queues it unless it waits for an approval or for its concurrency group.
func (s *Server) admit(r *state.Run, j *state.Job) {
	if j.CreatedAt.IsZero() {
		j.CreatedAt = s.now()
	}
	switch {
	case j.Environment != "" && !j.Approved:
		j.Status = state.StatusWaiting
		s.put(state.KindJob, j.ID, j)
		s.emitJob(r, j, state.StatusWaiting)
	case !s.groupTaken(r, j):
		s.enqueue(r, j)
	}
}

// groupTaken reports whether another job of the repository with the concurrency group of j is queued or runs. The real GitHub
// cancels all but the last of those that wait; here they all get their turn.
func (s *Server) groupTaken(r *state.Run, j *state.Job) bool {
	if j.Group == "" {
		return false
	}
	for _, other := range s.jobs {
		if other.Group == j.Group && (other.Status == state.StatusQueued || other.Status == state.StatusInProgress) &&
			strings.EqualFold(s.runs[other.RunID].Repository, r.Repository) {
			return true
		}
	}
	return false
}

// scheduleGroups goes on with the runs that have a job whose concurrency group is free now.
func (s *Server) scheduleGroups() {
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		r := s.runs[id]
		if r.Status != state.StatusCompleted && slices.ContainsFunc(r.Jobs, func(id int64) bool {
			j := s.jobs[id]
			return j.Status == state.StatusPending && j.Group != "" && !j.CreatedAt.IsZero() && !s.groupTaken(r, j)
		}) {
			s.schedule(r)
		}
	}
}

// approve lets the jobs of a run that wait for an approval go on, as a person would.
func (s *Server) approve(r *state.Run) error {
	for _, id := range r.Jobs {
		if j := s.jobs[id]; j.Status == state.StatusWaiting {
			j.Status, j.Approved = state.StatusPending, true
			s.put(state.KindJob, j.ID, j)
		}
	}
	s.schedule(r)
	return nil
}

func (s *Server) enqueue(r *state.Run, j *state.Job) {
	j.Status, j.QueuedAt = state.StatusQueued, s.now()
	s.queue = append(s.queue, j)
	s.put(state.KindJob, j.ID, j)
	s.emitJob(r, j, state.StatusQueued)
}

// needs reports whether all the jobs that j needs succeeded, and whether one of them did not.
func (s *Server) needs(r *state.Run, j *state.Job) (ready, failed bool) {
	ready = true
	for _, id := range r.Jobs {
		other := s.jobs[id]
		if !slices.ContainsFunc(j.Needs, func(n string) bool { return strings.EqualFold(n, other.Key) }) {
			continue
		}
		if other.Status != state.StatusCompleted {
			ready = false
		} else if other.Conclusion != state.ConclusionSuccess {
			failed = true
		}
	}
	return ready, failed
}

// mayRun applies max-parallel.
func (s *Server) mayRun(r *state.Run, j *state.Job) bool {
	if j.MaxParallel == 0 {
		return true
	}
	active := 0
	for _, id := range r.Jobs {
		other := s.jobs[id]
		if other.Key == j.Key && (other.Status == state.StatusQueued || other.Status == state.StatusInProgress) {
			active++
		}
	}
	return active < j.MaxParallel
}

// settle brings the run's own status in line with its jobs.
func (s *Server) settle(r *state.Run) {
	s.put(state.KindRun, r.ID, r)
	if r.Status == state.StatusCompleted {
		return
	}
	r.UpdatedAt = s.now()
	if status := s.statusOf(r); status != state.StatusCompleted {
		begins := status == state.StatusInProgress && r.Status != status
		if r.Status = status; begins {
			s.emitRun(r, status)
		}
		return
	}
	r.Status, r.Conclusion = state.StatusCompleted, s.verdict(r)
	s.log.Info("run completed", "run", r.ID, "conclusion", r.Conclusion)
	s.emitRun(r, state.StatusCompleted)
}

// statusOf is the status of a run by those of its jobs. One job that waits for an approval makes all of it waiting.
func (s *Server) statusOf(r *state.Run) string {
	has, begun := map[string]bool{}, false
	for _, id := range r.Jobs {
		j := s.jobs[id]
		begun = begun || j.Attempt == r.Attempt && !j.StartedAt.IsZero()
		if j.Status != state.StatusPending || !j.CreatedAt.IsZero() {
			has[j.Status] = true
		} else {
			has["unmade"] = true
		}
	}
	switch {
	case has[state.StatusWaiting]:
		return state.StatusWaiting
	case has[state.StatusPending] && !has[state.StatusQueued] && !has[state.StatusInProgress]:
		return state.StatusPending
	case has[state.StatusQueued] || has[state.StatusInProgress] || has["unmade"] || has[state.StatusPending]:
		if begun {
			return state.StatusInProgress
		}
		return state.StatusQueued
	}
	return state.StatusCompleted
}

// verdict is the conclusion of a run whose jobs are all completed. A job that fail-fast cancelled counts with the failure that
// did it; one that a person cancelled makes the run cancelled.
func (s *Server) verdict(r *state.Run) string {
	verdict := state.ConclusionSuccess
	for _, id := range r.Jobs {
		switch conclusion := s.jobs[id].Conclusion; {
		case conclusion == state.ConclusionCancelled && r.Cancelled:
			return state.ConclusionCancelled
		case conclusion != state.ConclusionSuccess:
			verdict = state.ConclusionFailure
		}
	}
	return verdict
}

// begin marks a job as taken by its runner.
func (s *Server) begin(j *state.Job) {
	r := s.runs[j.RunID]
	j.Status, j.StartedAt = state.StatusInProgress, s.now()
	s.put(state.KindJob, j.ID, j)
	s.emitJob(r, j, state.StatusInProgress)
	s.settle(r)
}

// complete ends a job and everything that hangs on it. reason, if any, goes into its log.
func (s *Server) complete(j *state.Job, conclusion, reason string) {
	if j.Status == state.StatusCompleted {
		return
	}
	r := s.runs[j.RunID]
	if reason != "" {
		s.annotate(j, reason)
	}
	s.finish(j, conclusion)
	if conclusion == state.ConclusionFailure && j.FailFast {
		for _, id := range r.Jobs {
			if sibling := s.jobs[id]; sibling.Key == j.Key {
				s.cancelJob(sibling)
			}
		}
	}
	s.schedule(r)
}

// finish writes the end of a job and frees its runner; an ephemeral runner is gone with its one job.
func (s *Server) finish(j *state.Job, conclusion string) {
	s.queue = slices.DeleteFunc(s.queue, func(q *state.Job) bool { return q == j })
	started := j.Status == state.StatusInProgress
	s.freeRunner(j)
	if r := s.runners[j.RunnerID]; r != nil && r.Ephemeral && started {
		s.removeRunner(r)
	}
	if !started {
		j.RunnerID, j.RunnerName, j.GroupID, j.Hosted = 0, "", 0, false
	}
	if j.CreatedAt.IsZero() {
		j.CreatedAt = s.now() // it was skipped, or cancelled before its needs were met
	}
	j.Status, j.Conclusion, j.CompletedAt, j.Token = state.StatusCompleted, conclusion, s.now(), ""
	s.put(state.KindJob, j.ID, j)
	s.emitJob(s.runs[j.RunID], j, state.StatusCompleted)
}

func (s *Server) annotate(j *state.Job, text string) {
	size, err := s.logs.Size(j.ID)
	if err == nil {
		err = s.logs.Append(j.ID, size, []byte("##[error]"+text+"\n"))
	}
	if err != nil {
		s.log.Warn("cannot write log", "job", j.ID, "error", err)
	}
}

// refused makes the answer to a workflow file that cannot run.
func refused(err error) error {
	e := &rest.Error{Status: http.StatusUnprocessableEntity, Message: err.Error()}
	var invalid *workflow.Invalid
	if errors.As(err, &invalid) {
		e.Problems = invalid.Problems
		e.Message = "invalid workflow file"
	}
	return e
}
