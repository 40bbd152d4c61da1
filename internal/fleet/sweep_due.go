package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// dueAtOnce is how many due rows one page of a sweep takes.
const dueAtOnce = 100

// DueSweep looks at what is due: hosts whose moment has come, and requests
// that stand still. Its cost grows with what is due, not with what exists.
type DueSweep struct {
	op.Stages
	f *Fleet

	hosts    []lifecycle.Facts
	left     left                 // terminated: their runs follow
	ending   []lifecycle.Record   // terminated: the machine follows
	hold     *lifecycle.FleetHold // which kept the machines of ending; nil: none did
	requests []lifecycle.Request
	op       op.Op // the request in hand
	// unavailable counts the requests in a row that could not be carried on.
	unavailable int
	// seen keeps one sweep from taking up the same row twice. page is where it reads
	// on, once all that it listed is seen: what stays due hides nothing behind it.
	seen map[string]bool
	page lifecycle.PageOf
}

// NewDueSweep begins a sweep.
func (f *Fleet) NewDueSweep() *DueSweep {
	s := &DueSweep{f: f, Stages: f.ops.Stages("due"), seen: map[string]bool{}, page: lifecycle.PageOf{Limit: dueAtOnce}}
	s.Next = s.listHosts
	return s
}

func (s *DueSweep) listHosts(ctx context.Context, now time.Time) (op.Progress, error) {
	page, err := s.f.store.DueInstances(ctx, now, s.page)
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
			s.Next = s.listRequests
		}
		return op.Again, nil
	}
	if s.hosts, err = s.f.gather(ctx, due, now); err != nil {
		return op.Again, err
	}
	s.left, s.ending = newLeft(), nil
	s.Next = s.host
	return op.Again, nil
}

// gather reads what is known about hosts, in batches: reports, and the
// requests that they name.
func (f *Fleet) gather(ctx context.Context, records []lifecycle.Record, now time.Time) ([]lifecycle.Facts, error) {
	keys := make([]string, 0, len(records))
	for _, r := range records {
		if r.State != lifecycle.StateTerminated {
			keys = append(keys, r.HostKey)
		}
	}
	reports, err := f.reports(ctx, keys, now)
	if err != nil {
		return nil, err
	}
	requests := map[string]*lifecycle.Request{}
	facts := make([]lifecycle.Facts, 0, len(records))
	for _, r := range records {
		fact := lifecycle.Facts{Record: r}
		if report, ok := reports[r.HostKey]; ok {
			fact.Report = &report
		}
		if fact.Request, err = f.requestKnown(ctx, r, requests); err != nil {
			return nil, err
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// requestKnown is requestOf, but for a request that cannot be read: it is taken for
// unknown, as one that is gone. By that no host is released or replaced, and its
// other reasons to end are looked at all the same.
func (f *Fleet) requestKnown(ctx context.Context, r lifecycle.Record, seen map[string]*lifecycle.Request) (*lifecycle.Request, error) {
	q, err := f.requestOf(ctx, r, seen)
	if err != nil && !op.Transient(ctx, err) {
		f.log.Error("a request cannot be read; its host is looked at without it", "instance", r.InstanceID, "run", r.RunID, "error", err)
		return nil, nil
	}
	return q, err
}

// requestOf reads the request that a record names, once per request.
func (f *Fleet) requestOf(ctx context.Context, r lifecycle.Record, seen map[string]*lifecycle.Request) (*lifecycle.Request, error) {
	if r.RunID == "" || r.RequestID == "" {
		return nil, nil
	}
	key := lifecycle.RunKey(r.Repository, r.RunID) + "\x00" + r.RequestID
	if q, ok := seen[key]; ok {
		return q, nil
	}
	q, err := f.store.Request(ctx, r.Repository, r.RunID, r.RequestID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		seen[key] = nil
	case err != nil:
		return nil, fmt.Errorf("read request %s: %w", r.RequestID, err)
	default:
		seen[key] = &q
	}
	return seen[key], nil
}

// host decides on one due host. The terminated ones are put aside, since their runs
// are looked at, and the cloud is asked about them, many at once.
func (s *DueSweep) host(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.hosts) == 0 {
		s.Next = s.lookAtLeft
		return op.Again, nil
	}
	facts := s.hosts[0]
	if facts.Record.State == lifecycle.StateTerminated {
		s.putAside(facts.Record)
		s.hosts = s.hosts[1:]
		return op.Again, nil
	}
	r, d, err := s.f.bring(ctx, &s.Events, facts, now)
	if err == nil && d.Action == lifecycle.ActionKeep && r.Version == facts.Record.Version {
		err = s.f.postpone(ctx, r, d, now)
	}
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	if err == nil && r.State == lifecycle.StateTerminated {
		s.putAside(r)
	}
	s.hosts = s.hosts[1:]
	return op.Again, nil
}

func (s *DueSweep) putAside(r lifecycle.Record) {
	if r.LostBy != nil {
		s.left.hosts = append(s.left.hosts, r)
		return
	}
	s.ending = append(s.ending, r)
}

// postpone writes when a host that stays as it is must be looked at again.
func (f *Fleet) postpone(ctx context.Context, r lifecycle.Record, d lifecycle.Decision, now time.Time) error {
	look := d.CheckAt
	if before := r.HoldCheckAt(now); r.Held(now) && before.Before(look) {
		look = before
	}
	if !look.After(now) {
		look = now.Add(f.policy(r.Pool).ReleasePoll)
	}
	if r.DueAt.Equal(look) {
		return nil
	}
	r.DueAt = look
	if _, err := f.store.UpdateInstance(ctx, r); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		return fmt.Errorf("postpone host %s: %w", r.InstanceID, err)
	}
	return nil
}

// listRequests takes up the requests that stand still.
func (s *DueSweep) listRequests(ctx context.Context, now time.Time) (op.Progress, error) {
	page, err := s.f.store.DueRequests(ctx, now, s.page)
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
		s.Next = s.request
		return op.Again, nil
	}
	if s.page.After = page.Next; page.Next == "" {
		return op.Done, nil
	}
	return op.Again, nil
}

// unavailableAtMost is how many requests in a row, hosts of an owner, or registrations
// of a page, may find a dependency away before the sweep leaves the rest: one of them does not hold up
// the others, and with the dependency away they are not tried in vain.
const unavailableAtMost = 3

// request steps one request until it is done or has to wait; then the next
// sweep goes on with it.
func (s *DueSweep) request(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.requests) == 0 {
		s.Next = s.listRequests
		return op.Again, nil
	}
	if s.op == nil {
		s.op = s.f.resume(s.requests[0])
	}
	progress, err := s.op.Step(ctx, now)
	if errors.Is(err, lifecycle.ErrUnavailable) {
		if s.unavailable++; s.unavailable >= unavailableAtMost {
			return op.Again, err
		}
	} else {
		s.unavailable = 0
	}
	if err != nil && !progress.Done {
		s.f.log.Error("request not carried on", "request", s.requests[0].RequestID, "run", s.requests[0].RunID, "error", err)
	}
	if err != nil || progress.Done || progress.Wait > 0 {
		s.requests, s.op = s.requests[1:], nil
	}
	return op.Again, nil
}
