package sweeps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// machines is the second half of a termination, for all that are due: ask the cloud once, tell it once, and
// when a machine is gone remove what is left of its registration and forget the host.
func (s *DueSweep) machines(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.ending) == 0 {
		s.stage, s.clouds = listingHosts, nil
		return op.Again, nil
	}
	clouds, err := s.env.Hosts.Describe(ctx, s.ending, now)
	if refused := err != nil && !errors.Is(err, lifecycle.ErrUnavailable); refused {
		s.env.Log.Warn("machines not described; they are ended without that", logkey.Error, err)
	} else if err != nil {
		return op.Again, err
	}
	s.stage, s.clouds = endingMachines, clouds
	return op.Again, nil
}

// endMachines tells the cloud of every machine that it still runs, in one
// call, and then goes through the hosts one by one.
func (s *DueSweep) endMachines(ctx context.Context, now time.Time) (op.Progress, error) {
	s.hold = nil
	var ids []string
	for _, r := range s.ending {
		if s.env.Hosts.Decide(hosts.CloudFacts(r, s.clouds), now).Action == lifecycle.ActionEndMachine {
			ids = append(ids, r.InstanceID)
		}
	}
	if len(ids) > 0 {
		var held *hosts.FleetHeldError
		if err := s.env.Hosts.EndMachines(ctx, ids, now); errors.Is(err, lifecycle.ErrUnavailable) {
			return op.Again, fmt.Errorf("terminate %d machines: %w", len(ids), err)
		} else if errors.As(err, &held) {
			s.hold = &held.Hold
		} else if err != nil {
			// One that may not be ended keeps no other from it.
			s.env.Log.Warn("machines not ended; tried again later", logkey.Instances, ids, logkey.Error, err)
		}
	}
	s.stage = endingHosts
	return op.Again, nil
}

// endHost does the next effect for one terminated host.
func (s *DueSweep) endHost(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.ending) == 0 {
		s.stage, s.clouds = listingHosts, nil
		return op.Again, nil
	}
	r := s.ending[0]
	facts := hosts.CloudFacts(r, s.clouds)
	facts.FleetHold = s.hold
	d := s.env.Hosts.Decide(facts, now)
	if d.Action == lifecycle.ActionDeleteRunner {
		gone, err := s.env.Hosts.DeleteRunner(ctx, r)
		if err != nil {
			s.env.Log.Warn("registration not deleted; tried again later", logkey.Instance, r.InstanceID, logkey.Runner, r.RunnerName, logkey.Error, err)
		}
		facts.Runner = &lifecycle.Runner{Name: r.RunnerName, Gone: gone}
		d = s.env.Hosts.Decide(facts, now)
	}
	s.Events.RecordDecision(r, d)
	_, err := s.env.Hosts.ApplyChecked(ctx, &s.Events, r, d, now)
	if err == nil && d.Action != lifecycle.ActionForget && d.Action != lifecycle.ActionHold {
		err = s.env.Hosts.Postpone(ctx, r, d, now)
	}
	if !errors.Is(err, lifecycle.ErrConflict) && !s.Past(ctx, err) {
		return op.Again, err
	}
	s.ending = s.ending[1:]
	return op.Again, nil
}
