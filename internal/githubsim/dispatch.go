package githubsim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/broker"
	"github.com/remuda-ci/remuda/internal/githubsim/journal"
	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// dispatch gives each queued job, in the order of Options.Assignment, to one idle runner that is listening and has its labels. It listens from when its
// session is open, as it says itself then: its first poll may still be on its way. After a restart that is not known of a runner
// until it polls again.
func (s *Server) dispatch() {
	if len(s.queue) == 0 {
		return
	}
	idle := s.idleRunners()
	for _, j := range s.assignment.Due(s.queue, s.now()) {
		i := slices.IndexFunc(idle, func(r *state.Runner) bool { return r.Serves(s.runs[j.RunID].Repository) && r.Has(j.Labels) })
		if i >= 0 {
			s.assign(j, idle[i])
			idle = slices.Delete(idle, i, i+1)
		}
	}
	s.queue = slices.DeleteFunc(s.queue, func(j *state.Job) bool { return j.RunnerID != 0 })
}

func (s *Server) idleRunners() []*state.Runner {
	var out []*state.Runner
	for r := range maps.Values(s.runners) {
		if r.JobID == 0 && r.Heard && s.broker.Present(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *state.Runner) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func (s *Server) assign(j *state.Job, r *state.Runner) {
	j.RunnerID, j.RunnerName, j.AssignedAt, j.GroupID, j.Hosted = r.ID, r.Name, s.now(), r.Group(), r.Hosted
	r.SetJob(j.ID, s.now(), s.times.BusyLag)
	s.put(state.KindJob, j.ID, j)
	s.put(state.KindRunner, r.ID, r)
	r.Notify()
	s.log.Debug("job assigned", "job", j.ID, "run", j.RunID, "runner", r.Name)
}

// unassign takes a job from its runner and puts it first in the queue.
func (s *Server) unassign(j *state.Job) {
	s.freeRunner(j)
	j.RunnerID, j.RunnerName, j.GroupID, j.Hosted = 0, "", 0, false
	s.put(state.KindJob, j.ID, j)
	s.queue = slices.Insert(s.queue, 0, j)
}

func (s *Server) freeRunner(j *state.Job) {
	r := s.runners[j.RunnerID]
	if r == nil || r.JobID != j.ID {
		return
	}
	r.SetJob(0, s.now(), s.times.BusyLag)
	delete(r.Sent, state.SentMessage{Kind: protocol.MessageJob, JobID: j.ID})
	s.put(state.KindRunner, r.ID, r)
}

func (s *Server) online(r *state.Runner) bool {
	return r.Session != "" && (r.Polls > 0 || s.now().Sub(r.LastSeen) < s.times.Offline)
}

// Tick applies what time has done: jobs that waited for a runner for too long, assigned jobs not picked up, jobs whose lock ran out,
// cancels without an answer, idle just-in-time runners, tokens that expired. The server calls it every half second of real time; a test that owns the clock calls it itself.
func (s *Server) Tick() {
	// An error of the journal is logged where it happens, and what could not be written goes with the next change.
	_ = s.change(func() error {
		now := s.now()
		for _, j := range s.busyJobs() {
			switch {
			case j.Status == state.StatusQueued && now.Sub(j.AssignedAt) >= PickUpTime:
				s.log.Info("assigned job was not picked up", "job", j.ID, "runner", j.RunnerName)
				s.unassign(j)
			case j.Status == state.StatusInProgress && !j.CancelledAt.IsZero() && now.Sub(j.CancelledAt) >= CancelTime:
				s.complete(j, state.ConclusionCancelled, "The runner did not stop the job in time.")
			case j.Status == state.StatusInProgress && !now.Before(j.LockedUntil):
				s.complete(j, state.ConclusionFailure, broker.LostMessage)
			}
		}
		for _, j := range slices.Clone(s.queue) {
			if now.Sub(j.QueuedAt) >= QueueTime {
				s.complete(j, state.ConclusionFailure, "The job was not picked up by a runner within 24 hours.")
			}
		}
		s.scheduleGroups()
		s.removeIdleJIT(now)
		for hash, t := range s.tokens {
			if !now.Before(t.ExpiresAt) {
				delete(s.tokens, hash)
				s.dirty[journal.Key{Kind: state.KindToken, ID: hash}] = nil
			}
		}
		return nil
	})
}

// removeIdleJIT removes just-in-time runners that have listened for too long without a job.
func (s *Server) removeIdleJIT(now time.Time) {
	for _, r := range s.runners {
		if r.JIT && r.JobID == 0 && r.Session != "" && now.Sub(r.IdleSince) >= s.times.IdleJIT {
			s.removeRunner(r)
		}
	}
}

// busyJobs are those assigned to a runner or running on one, in order of their ids.
func (s *Server) busyJobs() []*state.Job {
	var out []*state.Job
	for _, r := range s.runs {
		if r.Status == state.StatusCompleted {
			continue
		}
		for _, id := range r.Jobs {
			if j := s.jobs[id]; j.RunnerID != 0 && j.Status != state.StatusCompleted {
				out = append(out, j)
			}
		}
	}
	slices.SortFunc(out, func(a, b *state.Job) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
