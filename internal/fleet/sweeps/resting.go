package sweeps

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// resting is what a due sweep knows of the rest of hosts.
type resting struct {
	// newest are the newest hosts of each group that was asked for, for one page of due hosts.
	newest map[string][]lifecycle.Record
	// purges are the queues with messages of hosts that went to rest.
	purges []purge
}

// purge takes the messages of hosts that went to rest out of their queue, so that no claim meets them. A message cannot be looked up, so it
// reads what the queue gives, deletes what no claim can use, and returns the rest at the end. What it does not reach costs a claim one write.
type purge struct {
	queue lifecycle.QueueName
	// left is how many such messages may still be there, rounds how often the queue was read.
	left, rounds int
	// kept are messages that others can use.
	kept []string
}

// purgeRounds bounds how often a sweep reads a queue, so that it does not hide much of it from others.
const purgeRounds = 20

func newResting() resting { return resting{newest: map[string][]lifecycle.Record{}} }

func (t resting) state() []any {
	var state []any
	for _, group := range slices.Sorted(maps.Keys(t.newest)) {
		state = append(state, group, t.newest[group])
	}
	for _, p := range t.purges {
		state = append(state, p.queue.ResourceClass, string(p.queue.UsageClass), p.left, p.rounds, p.kept)
	}
	return state
}

// went notes that a host went to rest by its queue.
func (t *resting) went(q lifecycle.QueueName) {
	i := slices.IndexFunc(t.purges, func(p purge) bool { return p.queue == q })
	if i < 0 {
		t.purges = append(t.purges, purge{queue: q, left: 1})
		return
	}
	t.purges[i].left++
}

// decideRest decides on the rest of a pooled host that is kept, and carries it out. It returns the decision.
func (s *DueSweep) decideRest(ctx context.Context, r lifecycle.Record, d lifecycle.Decision, now time.Time) (lifecycle.Decision, error) {
	p, g := s.env.Hosts.Policy(r.Pool), hosts.GroupOf(r)
	if d.Code != lifecycle.ReasonWaitingForRun || !p.Waited(r, now) {
		return d, nil
	}
	newest, known := s.rest.newest[g.String()]
	if !known {
		var err error
		if newest, err = s.env.Hosts.Newest(ctx, g); err != nil {
			return d, err
		}
		s.rest.newest[g.String()] = newest
	}
	d = policy.Rest(p, newest, r, now)
	if d.Action == lifecycle.ActionKeep {
		return d, nil
	}
	err := s.env.Hosts.SetRest(ctx, &s.Events, r, d, now)
	if err == nil && d.Action == lifecycle.ActionRest && !s.env.Hosts.Pools[r.Pool].ByCaches() {
		s.rest.went(g.Queue)
	}
	return d, err
}

// purge reads one of the queues of hosts that went to rest. What cannot be read or deleted is left there.
func (s *DueSweep) purge(ctx context.Context, _ time.Time) (op.Progress, error) {
	if len(s.rest.purges) == 0 {
		s.stage = lookingAtLeft
		return op.Again, nil
	}
	p := &s.rest.purges[0]
	p.rounds++
	more, err := s.purgeSome(ctx, p)
	if err == nil && more && p.rounds < purgeRounds {
		return op.Again, nil
	}
	for kept := range slices.Chunk(p.kept, ports.ReceiveAtMost) {
		if err == nil {
			err = s.env.Hosts.Queue.Return(ctx, p.queue, kept...)
		}
	}
	if err != nil {
		s.env.Log.Warn("messages of hosts that rest may be left in their queue", logkey.Queue, p.queue, logkey.Error, err)
	}
	s.rest.purges = s.rest.purges[1:]
	return op.Again, nil
}

// purgeSome reads a few messages. It reports whether more of hosts that went to rest may be there.
func (s *DueSweep) purgeSome(ctx context.Context, p *purge) (more bool, err error) {
	got, err := s.env.Hosts.Queue.Receive(ctx, p.queue, ports.ReceiveAtMost)
	if err != nil || len(got) == 0 {
		return false, err
	}
	var keys, spent []string
	for _, d := range got {
		keys = append(keys, d.Message.HostKey)
	}
	records, err := s.env.Store.Instances(ctx, keys)
	if err != nil {
		return false, fmt.Errorf("read hosts: %w", err)
	}
	for _, d := range got {
		if slices.ContainsFunc(records, func(r lifecycle.Record) bool { return offers(d.Message, r) }) {
			p.kept = append(p.kept, d.Handle)
		} else {
			spent = append(spent, d.Handle)
		}
	}
	p.left -= len(spent)
	if len(spent) == 0 {
		return true, nil
	}
	return p.left > 0, s.env.Hosts.Queue.Delete(ctx, p.queue, spent...)
}

// offers reports whether the message says of the host that it waits, as it does.
func offers(m lifecycle.Message, r lifecycle.Record) bool {
	return r.HostKey == m.HostKey && r.Assignment == m.Assignment && r.Pooled() && !r.Resting()
}
