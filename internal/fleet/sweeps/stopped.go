package sweeps

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// lookAtStopped asks the cloud, once, about those of the hosts whose machines are stopped, stop or start. If it does not answer, they are
// decided on without that.
func (sw *Sweeps) lookAtStopped(ctx context.Context, of []lifecycle.Facts, now time.Time) error {
	var asked []lifecycle.Record
	for _, facts := range of {
		if facts.Record.Stop != nil {
			asked = append(asked, facts.Record)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	clouds, err := sw.Hosts.Describe(ctx, asked, now)
	switch {
	case errors.Is(err, lifecycle.ErrUnavailable):
		return err
	case err != nil:
		sw.Log.Warn("machines of stopped hosts not described", logkey.Error, err)
	}
	for i, facts := range of {
		if m, ok := clouds[facts.Record.InstanceID]; ok && facts.Record.Stop != nil {
			of[i].Cloud = &m
		}
	}
	return nil
}

// order has the cloud stop or start the machine of a host, or replace its root volume. The host is looked at again soon.
func (s *DueSweep) order(ctx context.Context, facts lifecycle.Facts, d lifecycle.Decision, now time.Time) (lifecycle.Record, lifecycle.Decision, error) {
	give := s.env.Hosts.Power
	if d.Action == lifecycle.ActionReplaceRoot {
		give = s.env.Hosts.ReplaceRoot
	}
	r, after, err := give(ctx, &s.Events, facts, d, now)
	if err == nil && after.Action == d.Action {
		s.Events.Effects++
		err = s.env.Hosts.Postpone(ctx, r, d, now)
	}
	return r, after, err
}
