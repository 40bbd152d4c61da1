package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// stoppedAtMost bounds a listing of stopped hosts: what the configuration lets a pool have of a class.
const stoppedAtMost = 100

// StoppedHosts are the stopped hosts of a pool and queue.
func (hs *Hosts) StoppedHosts(ctx context.Context, pool string, q lifecycle.QueueName) ([]lifecycle.Record, error) {
	stopped, err := hs.Store.StoppedInstances(ctx, pool, q, stoppedAtMost)
	if err != nil {
		return nil, fmt.Errorf("list the stopped hosts of pool %s: %w", pool, err)
	}
	return stopped, nil
}

// countStopped adds to the facts of a host that would be ended for its idle time how many of its pool are stopped, if it may be one of them.
// Two replicas that count at once may stop one more than the pool is to have.
func (hs *Hosts) countStopped(ctx context.Context, facts lifecycle.Facts, d lifecycle.Decision) (_ lifecycle.Facts, counted bool, err error) {
	r := facts.Record
	if d.Action != lifecycle.ActionTerminate || d.Code != lifecycle.ReasonIdleTimeout || !hs.Policy(r.Pool).MayStop() || facts.StoppedHosts != nil {
		return facts, false, nil
	}
	stopped, err := hs.StoppedHosts(ctx, r.Pool, GroupOf(r).Queue)
	if err != nil {
		return facts, false, err
	}
	fresh := func(r lifecycle.Record) bool { return r.Unused() && !r.Renewed() }
	n := len(slices.DeleteFunc(stopped, fresh)) // fresh ones are counted before they are launched
	facts.StoppedHosts = &n
	return facts, true, nil
}

// Power tells the cloud to stop or to start the machine of a host, as was decided. It returns the record as it now stands and what was
// decided last: a host for which the cloud has no capacity is stopped again. Whatever else fails is tried again by the due sweep.
func (hs *Hosts) Power(ctx context.Context, j *op.Recorder, facts lifecycle.Facts, d lifecycle.Decision, now time.Time) (lifecycle.Record, lifecycle.Decision, error) {
	r := facts.Record
	var err error
	switch d.Action {
	case lifecycle.ActionStopMachine:
		var held *FleetHeldError
		if err = hs.MayEnd(ctx, now); err == nil {
			err = hs.Ender.Stop(ctx, r.InstanceID, d.Hibernate)
		} else if errors.As(err, &held) {
			return r, d, nil
		}
	case lifecycle.ActionStartMachine:
		err = hs.Ender.Start(ctx, r.InstanceID)
		var short *lifecycle.ShortageError
		if errors.As(err, &short) {
			facts.StartShort = short.Reason
			return hs.Reconcile(ctx, j, facts, now)
		}
	}
	if err != nil && op.Transient(ctx, err) {
		return r, d, fmt.Errorf("%s of host %s: %w", d.Action, r.InstanceID, err)
	} else if err != nil {
		hs.Log.Warn("machine not stopped or started; tried again later", logkey.Instance, r.InstanceID, logkey.Error, err)
	}
	return r, d, nil
}
