package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// machines is the second half of a termination, for all that are due: ask the
// cloud once, tell it once, and when a machine is gone remove what is left of
// its registration and forget the host.
func (s *DueSweep) machines(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.ending) == 0 {
		s.Next = s.listHosts
		return op.Again, nil
	}
	clouds, err := s.f.describe(ctx, s.ending, now)
	if refused := err != nil && !errors.Is(err, lifecycle.ErrUnavailable); refused {
		s.f.log.Warn("machines not looked at; they are told to end all the same", "error", err)
	} else if err != nil {
		return op.Again, err
	}
	s.Next = func(ctx context.Context, now time.Time) (op.Progress, error) { return s.endMachines(ctx, now, clouds) }
	return op.Again, nil
}

// describe asks the cloud about hosts, by instance id. A machine that it does not
// know may be too new for it to know: until the host is older than the grace
// period nothing is known of it, not even that it is gone.
func (f *Fleet) describe(ctx context.Context, records []lifecycle.Record, now time.Time) (map[string]lifecycle.Machine, error) {
	ids := make([]string, 0, len(records))
	young := map[string]bool{}
	for _, r := range records {
		ids = append(ids, r.InstanceID)
		young[r.InstanceID] = now.Sub(r.LaunchedAt) < f.timing.Grace
	}
	machines, err := f.compute.Describe(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("describe %d machines: %w", len(ids), err)
	}
	byID := make(map[string]lifecycle.Machine, len(machines))
	for _, m := range machines {
		if known := m.InstanceType != ""; known || !young[m.InstanceID] {
			byID[m.InstanceID] = m
		}
	}
	return byID, nil
}

// endMachines tells the cloud of every machine that it still runs, in one
// call, and then goes through the hosts one by one.
func (s *DueSweep) endMachines(ctx context.Context, now time.Time, clouds map[string]lifecycle.Machine) (op.Progress, error) {
	s.hold = nil
	var ids []string
	for _, r := range s.ending {
		if s.f.decide(ended(r, clouds), now).Action == lifecycle.ActionEndMachine {
			ids = append(ids, r.InstanceID)
		}
	}
	if len(ids) > 0 {
		var held *FleetHeldError
		if err := s.f.endMachines(ctx, ids, now); errors.Is(err, lifecycle.ErrUnavailable) {
			return op.Again, fmt.Errorf("terminate %d machines: %w", len(ids), err)
		} else if errors.As(err, &held) {
			s.hold = &held.Hold
		} else if err != nil {
			// One that may not be ended keeps no other from it.
			s.f.log.Warn("machines not ended; tried again later", "instances", ids, "error", err)
		}
	}
	s.Next = func(ctx context.Context, now time.Time) (op.Progress, error) { return s.endHost(ctx, now, clouds) }
	return op.Again, nil
}

func ended(r lifecycle.Record, clouds map[string]lifecycle.Machine) lifecycle.Facts {
	facts := lifecycle.Facts{Record: r}
	if m, ok := clouds[r.InstanceID]; ok {
		facts.Cloud = &m
	}
	return facts
}

// endHost does the next effect for one terminated host.
func (s *DueSweep) endHost(ctx context.Context, now time.Time, clouds map[string]lifecycle.Machine) (op.Progress, error) {
	if len(s.ending) == 0 {
		s.Next = s.listHosts
		return op.Again, nil
	}
	r := s.ending[0]
	facts := ended(r, clouds)
	facts.FleetHold = s.hold
	d := s.f.decide(facts, now)
	if d.Action == lifecycle.ActionDeleteRunner {
		gone, err := s.f.deleteRunner(ctx, r)
		if err != nil {
			s.f.log.Warn("registration not deleted; tried again later", "instance", r.InstanceID, "runner", r.RunnerName, "error", err)
		}
		facts.Runner = &lifecycle.Runner{Name: r.RunnerName, Gone: gone}
		d = s.f.decide(facts, now)
	}
	s.Events.RecordDecision(r, d.Action, d.Reason)
	_, err := s.f.carry(ctx, &s.Events, r, d, now)
	if err == nil && d.Action != lifecycle.ActionForget && d.Action != lifecycle.ActionHold {
		err = s.f.postpone(ctx, r, d, now)
	}
	if !errors.Is(err, lifecycle.ErrConflict) && !s.Past(ctx, err) {
		return op.Again, err
	}
	s.ending = s.ending[1:]
	return op.Again, nil
}

// deleteRunner removes the registration that a host may have left, by its
// name. It reports whether none is left.
func (f *Fleet) deleteRunner(ctx context.Context, r lifecycle.Record) (gone bool, err error) {
	runner, err := f.github.FindRunner(ctx, r.Repository, r.RunnerName)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("find runner %s: %w", r.RunnerName, err)
	}
	if err := f.github.DeleteRunner(ctx, r.Repository, runner.ID); err != nil {
		return false, fmt.Errorf("delete runner %s: %w", r.RunnerName, err)
	}
	return true, nil
}
