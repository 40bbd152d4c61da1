//go:build soak

package soak_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

// hosts are the agents of all machines, in the process of the test: each reads its own record and writes its own report, as agentd does, and is ready
// or clean at once. So what is measured is controld, and thousands of runs fit into minutes.
type hosts struct {
	t       testing.TB
	store   store.Store
	report  func(ctx context.Context, p lifecycle.Report) error
	history *history

	mu      sync.Mutex
	all     map[string]*host // by host key
	byID    map[string]*host
	hurt    []string
	jobs    int // that ran to their end
	drained int // of those, the ones whose run was released before
	ended   int
}

// host is one of them. It is guarded by the lock of hosts.
type host struct {
	key, id string
	record  lifecycle.Record
	told    lifecycle.Report
	toldAt  time.Time
	job     *job
	count   int // of jobs of this assignment
	ended   bool
}

// job is one that runs on a host.
type job struct {
	tenure
	until time.Time
	done  chan struct{}
}

const (
	lookEvery     = 25 * time.Millisecond // at the records of all hosts
	discoverEvery = time.Second           // hosts that were launched
	heartbeat     = 10 * time.Second
	reportsAtOnce = 16
)

func newHosts(t testing.TB, s store.Store, report func(ctx context.Context, p lifecycle.Report) error, h *history) *hosts {
	return &hosts{t: t, store: s, report: report, history: h, all: map[string]*host{}, byID: map[string]*host{}}
}

// live lets the hosts live until ctx ends.
func (p *hosts) live(ctx context.Context) {
	var discovered time.Time
	for ctx.Err() == nil {
		if time.Since(discovered) >= discoverEvery {
			p.discover(ctx)
			discovered = time.Now()
		}
		p.look(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// discover finds the hosts that are new. What cannot be read now is read the next time.
func (p *hosts) discover(ctx context.Context) {
	list, err := p.records(ctx)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range list {
		if p.all[r.HostKey] == nil {
			h := &host{key: r.HostKey, id: r.InstanceID}
			p.all[r.HostKey], p.byID[r.InstanceID] = h, h
		}
	}
}

// records are those of the hosts that have not ended.
func (p *hosts) records(ctx context.Context) (all []lifecycle.Record, err error) {
	page := lifecycle.PageOf{Limit: 500}
	for {
		list, err := p.store.ListInstances(ctx, lifecycle.Filter{States: lifecycle.LiveStates}, page)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if list.Next == "" {
			return all, nil
		}
		page.After = list.Next
	}
}

// look reads the records of all hosts at once, and has each say what it has to.
func (p *hosts) look(ctx context.Context) {
	var keys []string
	p.mu.Lock()
	for key, h := range p.all {
		if !h.ended {
			keys = append(keys, key)
		}
	}
	p.mu.Unlock()
	s := span{call: p.history.now()}
	records, err := p.store.Instances(ctx, keys)
	if err != nil {
		return // a store that is away says nothing
	}
	s.back = p.history.now()
	var reports []lifecycle.Report
	for _, r := range records {
		if report, news := p.see(r, s); news {
			reports = append(reports, report)
		}
	}
	p.tell(ctx, reports)
}

// tell writes reports. One that fails is written again after the next look.
func (p *hosts) tell(ctx context.Context, reports []lifecycle.Report) {
	var group errgroup.Group
	group.SetLimit(reportsAtOnce)
	for _, report := range reports {
		group.Go(func() error {
			if p.report(ctx, report) != nil {
				return nil
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			h := p.all[report.HostKey]
			h.told, h.toldAt = report, time.Now()
			return nil
		})
	}
	_ = group.Wait() // none returns an error
}

// see takes in a record and returns what the host has to say, if there is news.
func (p *hosts) see(r lifecycle.Record, s span) (report lifecycle.Report, news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.all[r.HostKey]
	if r.State == lifecycle.StateTerminated {
		p.end(h, r, s)
		return report, false
	}
	p.history.sees(h.id, read{s, r.RunID, r.Assignment})
	if r.Assignment != h.record.Assignment && h.job == nil {
		h.count = 0
	}
	h.record = r
	p.work(h)
	report = h.says()
	before := h.told
	before.HeartbeatAt = report.HeartbeatAt
	return report, fmt.Sprint(before) != fmt.Sprint(report) || time.Since(h.toldAt) >= heartbeat
}

// end is of a host whose record says so.
func (p *hosts) end(h *host, r lifecycle.Record, s span) {
	h.ended, h.record = true, r
	p.ended++
	p.history.endsAt(h.id, s)
	if h.job != nil {
		p.hurt = append(p.hurt, fmt.Sprintf("host %s of run %s was ended while its job ran: %s", h.id, h.job.run, r.Reason))
		close(h.job.done)
		h.job = nil
	}
}

// work lets the job of a host go on, and sees to it that nothing happens to it: its run has the host, or has released it and the host drains.
func (p *hosts) work(h *host) {
	j, r := h.job, h.record
	if j == nil {
		return
	}
	if mine := r.RunID == j.run && r.Assignment == j.assignment; !mine && !(r.Releasing() && r.Assignment == j.assignment+1) {
		p.hurt = append(p.hurt, fmt.Sprintf("host %s has a job of run %s and is %s of run %q, assignment %d", h.id, j.run, r.Condition(), r.RunID, r.Assignment))
	}
	if time.Now().After(j.until) {
		p.jobs++
		if r.RunID == "" {
			p.drained++
		}
		h.job = nil
		close(j.done)
	}
}

// says is what the agent has done of what its record asks for.
func (h *host) says() lifecycle.Report {
	r := h.record
	report := lifecycle.Report{
		HostKey: h.key, HeartbeatAt: time.Now(), Assignment: r.Assignment, RunID: r.RunID, Busy: h.job != nil, Jobs: h.count,
	}
	switch {
	case r.State == lifecycle.StateCreated || r.State == lifecycle.StateClaimed || r.State == lifecycle.StateRunning:
		report.Signal = lifecycle.SignalRegOK
	case h.job == nil && r.State == lifecycle.StateIdle:
		report.Signal = lifecycle.SignalRemoveRegOK
	}
	return report
}

// begin starts a job on a host of a run, and returns what is closed at its end.
func (p *hosts) begin(t tenure, lasts time.Duration) (done chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.byID[t.host]
	switch {
	case h == nil || h.ended:
		return nil, fmt.Errorf("run %s was given host %s, which has ended or was never there", t.run, t.host)
	case h.job != nil:
		return nil, fmt.Errorf("run %s was given host %s, where a job of run %s runs", t.run, t.host, h.job.run)
	}
	h.job, h.count = &job{tenure: t, until: time.Now().Add(lasts), done: make(chan struct{})}, h.count+1
	return h.job.done, nil
}

// busy are the ids of the hosts with a job.
func (p *hosts) busy() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, h := range p.byID {
		if h.job != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// hurtOf notes what happened to those of the hosts that still have a job.
func (p *hosts) hurtOf(ids []string, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if h := p.byID[id]; h.job != nil {
			p.hurt = append(p.hurt, fmt.Sprintf("host %s: %s, while a job of run %s ran", id, why, h.job.run))
		}
	}
}
