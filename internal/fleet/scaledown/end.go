package scaledown

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// carries is a step with the host in hand. A host with which it fails for a reason
// of its own, such as a damaged row, is left to the next sweep.
func (s *Sweep) carries(step func(context.Context, judged, time.Time) (op.Progress, error)) func(context.Context, time.Time) (op.Progress, error) {
	return func(ctx context.Context, now time.Time) (op.Progress, error) {
		h := s.owners[0].judged[0]
		progress, err := step(ctx, h, now)
		if !s.Past(ctx, err) {
			return progress, err
		}
		if err != nil {
			return s.over(h, lifecycle.ActionKeep, failed(err)), nil
		}
		return progress, nil
	}
}

// carryOut begins what was decided about a host. Its end takes three effects: the mark that it is going, the
// deletion of its registrations, and the end of the record, after which the due sweep ends the machine.
// Before each of them the host is looked at again.
func (s *Sweep) carryOut(ctx context.Context, h judged, now time.Time) (op.Progress, error) {
	if heldBack(h.Action) {
		if held, err := s.held(ctx, h, now); held || err != nil {
			return op.Again, err
		}
	}
	switch h.Action {
	case lifecycle.ActionTerminate, lifecycle.ActionMarkOrphan:
		why, err := s.env.starting(ctx, h.record, now)
		if err != nil {
			return op.Again, err
		}
		if why.Given() {
			return s.keep(ctx, h, why, now)
		}
	}
	switch h.Action {
	case policy.ActionDeregisterAndTerminate:
		return s.begin(ctx, h, now)
	case lifecycle.ActionTerminate:
		if s.Events.Dry {
			return s.over(h, lifecycle.ActionTerminate, h.Why()), nil
		}
		return s.Then(s.carries(s.end))
	}
	return s.mark(ctx, h, now)
}

// over leaves the host in hand, with what became of it.
func (s *Sweep) over(h judged, action lifecycle.Action, why lifecycle.Reason) op.Progress {
	s.Events.RecordDecision(h.record, why.Decision(action))
	o := s.owners[0]
	o.judged, s.Next = o.judged[1:], s.host
	return op.Again
}

// keep leaves a host alone for which the policy has an action.
func (s *Sweep) keep(ctx context.Context, h judged, why lifecycle.Reason, now time.Time) (op.Progress, error) {
	h.Action, h.Code, h.Reason = lifecycle.ActionKeep, why.Code, why.Text
	return s.mark(ctx, h, now)
}

// mark writes what scale-down has seen of a host into its record, if that is not
// there yet. A host that is to stay is none that is going.
func (s *Sweep) mark(ctx context.Context, h judged, now time.Time) (op.Progress, error) {
	before, after, action := h.record, h.record, h.Action
	after.GitHubRunnerID = h.seen.RunnerID
	if action == lifecycle.ActionKeep && before.ScalingDown() {
		action = lifecycle.ActionUnmarkIdle
	}
	switch action {
	case lifecycle.ActionMarkOrphan:
		after.OrphanAt = now
	case lifecycle.ActionUnmarkOrphan:
		after.OrphanAt = time.Time{}
	case lifecycle.ActionMarkIdle:
		after.IdleDetectedAt = now
	case lifecycle.ActionUnmarkIdle:
		after.UndoScaleDown()
	}
	if s.Events.Dry || action == lifecycle.ActionKeep && after.GitHubRunnerID == before.GitHubRunnerID {
		return s.over(h, action, h.Why()), nil
	}
	_, err := s.write(ctx, before, after, h.Why().Decision(action), now)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		return s.over(h, lifecycle.ActionKeep, changedSince), nil
	case err != nil:
		return op.Again, err
	}
	return s.over(h, action, h.Why()), nil
}

// write is one conditional write. Learning the id of a runner is not an event.
func (s *Sweep) write(ctx context.Context, before, after lifecycle.Record, d lifecycle.Decision, now time.Time) (lifecycle.Record, error) {
	if d.Action != lifecycle.ActionKeep {
		after.UpdatedAt = now
	}
	stored, err := s.env.Store.UpdateInstance(ctx, after)
	if err != nil {
		return before, fmt.Errorf("%s host %s: %w", d.Action, before.InstanceID, err)
	}
	if d.Action != lifecycle.ActionKeep {
		s.Events.RecordEffect(op.TransitionEvent(before, stored, d, now))
	}
	return stored, nil
}

// begin marks a host that is to be ended: the mark says that its registration may be gone, and
// the host is not pooled again.
func (s *Sweep) begin(ctx context.Context, h judged, now time.Time) (op.Progress, error) {
	if !h.unregistered { // without a registration no run can use it
		why, err := s.env.spared(ctx, h.record)
		if err != nil {
			return op.Again, err
		}
		if why.Given() {
			return s.keep(ctx, h, why, now)
		}
	}
	if s.Events.Dry {
		return s.over(h, lifecycle.ActionTerminate, h.Why()), nil
	}
	if h.record.ScalingDown() {
		return s.Then(s.carries(s.deregister))
	}
	after := h.record
	after.GitHubRunnerID = h.seen.RunnerID
	after.BeginScaleDown(now)
	stored, err := s.write(ctx, h.record, after, h.Why().Decision(lifecycle.ActionRetire), now)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		return s.over(h, lifecycle.ActionKeep, changedSince), nil
	case err != nil:
		return op.Again, err
	}
	s.owners[0].judged[0].record, s.Next = stored, s.carries(s.deregister)
	return op.Again, nil
}

// deregister deletes the next registration of a host that is going.
func (s *Sweep) deregister(ctx context.Context, h judged, now time.Time) (op.Progress, error) {
	if len(h.RunnerIDs) == 0 {
		s.owners[0].judged[0].unregistered, s.Next = true, s.carries(s.end)
		return op.Again, nil
	}
	if ok, err := s.still(ctx, h, now); !ok {
		return op.Again, err
	}
	id := h.RunnerIDs[0]
	err := s.env.GitHub.DeleteRunner(ctx, h.record.Repository, id)
	switch {
	case errors.Is(err, lifecycle.ErrBusy):
		s.busyWhy, s.Next = gotJob(id), s.carries(s.takeBack)
		return op.Again, nil
	case err != nil && op.Transient(ctx, err):
		if s.unanswered++; s.unanswered >= op.UnavailableAtMost || ctx.Err() != nil {
			return s.leave(ctx, fmt.Sprintf("delete runner %d", id), err)
		}
		s.env.Log.Warn("GitHub does not answer; the host stays, and the next sweep tries again", logkey.Instance, h.record.InstanceID, logkey.Runner, id, logkey.Error, err)
		return s.over(h, lifecycle.ActionKeep, notAnswered(id)), nil
	case err != nil:
		s.env.Log.Warn("registration not deleted; the host stays, and the next sweep tries again", logkey.Instance, h.record.InstanceID, logkey.Runner, id, logkey.Error, err)
		return s.over(h, lifecycle.ActionKeep, notDeleted(id)), nil
	}
	d := deleted(id, h.HostVerdict).Decision(lifecycle.ActionDeleteRunner)
	s.Events.RecordEffect(op.TransitionEvent(h.record, h.record, d, now))
	s.owners[0].judged[0].RunnerIDs, s.unanswered = h.RunnerIDs[1:], 0
	return op.Again, nil
}

// end ends the record, in one write. The due sweep follows with the machine, and
// with another look at the run.
func (s *Sweep) end(ctx context.Context, h judged, now time.Time) (op.Progress, error) {
	if ok, err := s.still(ctx, h, now); !ok {
		return op.Again, err
	}
	d := h.Why().Decision(lifecycle.ActionTerminate)
	d.Deregistered, d.LosesRun = h.unregistered, true
	_, err := s.env.Hosts.ApplyChecked(ctx, &s.Events, h.record, d, now)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		return s.over(h, lifecycle.ActionKeep, changedSince), nil
	case err != nil:
		return op.Again, err
	}
	return s.over(h, lifecycle.ActionTerminate, h.Why()), nil
}

// held reports whether the fleet is: then the host in hand is left as it is, with the marks that it has.
func (s *Sweep) held(ctx context.Context, h judged, now time.Time) (bool, error) {
	hold, err := s.env.Hosts.FleetHold(ctx)
	if err != nil || !hold.InForce(now) {
		return false, err
	}
	s.over(h, lifecycle.ActionKeep, underHold(hold, h.HostVerdict))
	return true, nil
}

// still reports whether the host is as it was when it was decided about, and its
// agent says of no job. If not, the host in hand is left, or its mark taken back.
func (s *Sweep) still(ctx context.Context, h judged, now time.Time) (bool, error) {
	if held, err := s.held(ctx, h, now); held || err != nil {
		return false, err
	}
	r, err := s.env.Store.Instance(ctx, h.record.HostKey)
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		return false, fmt.Errorf("read host %s: %w", h.record.InstanceID, err)
	}
	if err != nil || r.Version != h.record.Version {
		s.over(h, lifecycle.ActionKeep, changedSince)
		return false, nil
	}
	reports, err := s.env.Hosts.Reports(ctx, []string{h.record.HostKey}, now)
	if err != nil {
		return false, err
	}
	if _, heard := reports[h.record.HostKey]; !heard && !s.env.Hosts.Listened(h.record.Pool, now) {
		s.busyWhy, s.Next = notHeard, s.carries(s.takeBack)
		return false, nil
	}
	if reports[h.record.HostKey].Busy {
		s.busyWhy, s.Next = atWork, s.carries(s.takeBack)
		return false, nil
	}
	return true, nil
}

// takeBack takes back the mark of a host that turned out busy.
func (s *Sweep) takeBack(ctx context.Context, h judged, now time.Time) (op.Progress, error) {
	return s.keep(ctx, h, s.busyWhy, now)
}
