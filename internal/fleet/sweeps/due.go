package sweeps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// DueSweep looks at what is due: hosts whose moment has come, and requests
// that stand still. Its cost grows with what is due, not with what exists.
type DueSweep struct {
	op.Stages
	env *Sweeps

	stage    dueStage
	hosts    []lifecycle.Facts
	left     left                         // terminated: their runs follow
	ending   []lifecycle.Record           // terminated: the machine follows
	clouds   map[string]lifecycle.Machine // those machines, as the cloud describes them
	hold     *fleethold.Hold              // which kept the machines of ending; nil: none did
	rest     resting
	requests []lifecycle.Request
	op       op.Op // the request in hand
	// opCtx is that in which its steps are followed, and opEnd is called with its error.
	opCtx context.Context
	opEnd func(error)
	// unavailable counts the requests in a row that could not be carried on.
	unavailable int
	// seen keeps one sweep from taking up the same row twice. page is where it reads
	// on, once all that it listed is seen: what stays due hides nothing behind it.
	seen map[string]bool
	page lifecycle.PageOf
}

// dueStage is what a due sweep works on.
type dueStage int

const (
	listingHosts    dueStage = iota // it reads a page of due hosts
	decidingHosts                   // it decides on each
	purging                         // it takes the messages of hosts that went to rest out of their queues
	lookingAtLeft                   // it looks at the runs that terminated ones have left
	providing                       // and provides for the jobs of such a run
	describing                      // it asks the cloud for the machines of terminated ones
	endingMachines                  // it ends those that still run
	endingHosts                     // it does the rest for each
	listingRequests                 // it reads a page of due requests
	resuming                        // it resumes each
)

func (s *DueSweep) step(ctx context.Context, now time.Time) (op.Progress, error) {
	switch s.stage {
	case listingHosts:
		return s.listHosts(ctx, now)
	case decidingHosts:
		return s.host(ctx, now)
	case purging:
		return s.purge(ctx, now)
	case lookingAtLeft:
		return s.lookAtLeft(ctx, now)
	case providing:
		return s.provide(ctx, now)
	case describing:
		return s.machines(ctx, now)
	case endingMachines:
		return s.endMachines(ctx, now)
	case endingHosts:
		return s.endHost(ctx, now)
	case listingRequests:
		return s.listRequests(ctx, now)
	}
	return s.request(ctx, now)
}

// State implements op.Stated.
func (s *DueSweep) State() []any {
	return []any{
		int(s.stage), s.hosts, s.left.state(), s.rest.state(), s.ending, s.clouds, s.hold, s.requests, op.StateOf(s.op), s.unavailable, s.seen, s.page.After, s.Passed(), s.Events.Offers,
	}
}

// NewDueSweep begins a sweep.
func (sw *Sweeps) NewDueSweep() *DueSweep {
	s := &DueSweep{env: sw, Stages: sw.Ops.Stages("due"), seen: map[string]bool{}, page: lifecycle.PageOf{Limit: op.PageSize}}
	s.Next, s.Events.HoldsOffers = s.step, true
	return s
}

func (s *DueSweep) listHosts(ctx context.Context, now time.Time) (op.Progress, error) {
	page, err := s.env.Store.DueInstances(ctx, now, s.page)
	if err != nil {
		return op.Again, fmt.Errorf("list due hosts: %w", err)
	}
	var due []lifecycle.Record
	for _, r := range page.Items {
		if !s.seen[r.HostKey] {
			s.seen[r.HostKey] = true
			due = append(due, r)
		}
	}
	if len(due) == 0 {
		if s.page.After = page.Next; page.Next == "" {
			s.stage = listingRequests
		}
		return op.Again, nil
	}
	if s.hosts, err = s.env.Hosts.LoadFacts(ctx, due, now); err != nil {
		return op.Again, err
	}
	if err := s.env.lookAtStopped(ctx, s.hosts, now); err != nil {
		return op.Again, err
	}
	if err := s.env.lookAtResets(ctx, s.hosts); err != nil {
		return op.Again, err
	}
	s.left, s.ending, s.rest = newLeft(), nil, newResting()
	s.stage = decidingHosts
	return op.Again, nil
}

// host decides on one due host. The terminated ones are put aside, since their runs
// are looked at, and the cloud is asked about them, many at once.
func (s *DueSweep) host(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.hosts) == 0 {
		s.env.Hosts.SendOffers(ctx, &s.Events, 1)
		s.stage = lookingAtLeft
		if len(s.rest.purges) > 0 {
			s.stage = purging
		}
		return op.Again, nil
	}
	facts := s.hosts[0]
	if facts.Record.State == lifecycle.StateTerminated {
		s.putAside(facts.Record)
		s.hosts = s.hosts[1:]
		return op.Again, nil
	}
	r, d, err := s.env.Hosts.ReconcileSwept(ctx, &s.Events, facts, now)
	if err == nil && ordered(d) {
		r, d, err = s.order(ctx, facts, d, now)
	}
	if err == nil && d.Action == lifecycle.ActionKeep && r.Version == facts.Record.Version {
		err = s.stays(ctx, r, d, now)
	}
	if !s.Past(ctx, err) {
		s.env.Hosts.SendOffers(ctx, &s.Events, 1)
		return op.Again, err
	}
	s.env.Hosts.SendOffers(ctx, &s.Events, ports.SendAtOnce)
	if err == nil && r.State == lifecycle.StateTerminated {
		s.putAside(r)
	}
	s.hosts = s.hosts[1:]
	return op.Again, nil
}

// ordered reports whether the cloud is to do something with the machine of a host that lives.
func ordered(d lifecycle.Decision) bool {
	return d.Action == lifecycle.ActionStopMachine || d.Action == lifecycle.ActionStartMachine || d.Action == lifecycle.ActionReplaceRoot
}

// stays writes when a host that stays as it is is looked at again, unless it goes to rest or is woken.
func (s *DueSweep) stays(ctx context.Context, r lifecycle.Record, d lifecycle.Decision, now time.Time) error {
	d, err := s.decideRest(ctx, r, d, now)
	if err != nil || d.Action != lifecycle.ActionKeep {
		return err
	}
	return s.env.Hosts.Postpone(ctx, r, d, now)
}

func (s *DueSweep) putAside(r lifecycle.Record) {
	if r.LostBy != nil {
		s.left.hosts = append(s.left.hosts, r)
		return
	}
	s.ending = append(s.ending, r)
}

// listRequests takes up the requests that stand still.
func (s *DueSweep) listRequests(ctx context.Context, now time.Time) (op.Progress, error) {
	page, err := s.env.Store.DueRequests(ctx, now, s.page)
	if err != nil {
		return op.Again, fmt.Errorf("list due requests: %w", err)
	}
	s.requests = s.requests[:0]
	for _, q := range page.Items {
		key := "request " + lifecycle.RunKey(q.Repository, q.RunID) + "\x00" + q.RequestID
		if !s.seen[key] {
			s.seen[key] = true
			s.requests = append(s.requests, q)
		}
	}
	if len(s.requests) > 0 {
		s.stage = resuming
		return op.Again, nil
	}
	if s.page.After = page.Next; page.Next == "" {
		return op.Done, nil
	}
	return op.Again, nil
}

// request steps one request until it is done or has to wait; then the next sweep goes on with it.
func (s *DueSweep) request(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.requests) == 0 {
		s.stage = listingRequests
		return op.Again, nil
	}
	if s.op == nil {
		s.op = s.env.Resumer(s.requests[0])
		s.opCtx, s.opEnd = s.env.Ops.BeginOp(ctx, s.op)
	}
	progress, err := s.op.Step(s.opCtx, now)
	if errors.Is(err, lifecycle.ErrUnavailable) {
		if s.unavailable++; s.unavailable >= op.UnavailableAtMost {
			s.opEnd(err)
			return op.Again, err
		}
	} else {
		s.unavailable = 0
	}
	if err != nil && !progress.Done {
		s.env.Log.Error("request not carried on", logkey.Request, s.requests[0].RequestID, logkey.Run, s.requests[0].RunID, logkey.Error, err)
	}
	if err != nil || progress.Done || progress.Wait > 0 {
		s.opEnd(err)
		s.requests, s.op = s.requests[1:], nil
	}
	return op.Again, nil
}
