package explore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// ports are the fleet's, over the state: while an operation is rebuilt they
// give the answers that it got before, and afterwards they write down the new
// ones.
type ports struct {
	state     *state
	script    []answer
	replaying bool
	// lose: the answer of the step's write is lost; lost: it was.
	lose, lost bool
	// busy is what the operation last read of each host.
	busy map[string]bool
	// named are the hosts that named a run when it last listed those of its.
	named []string
}

// ask makes one call. Answers are copied, since operations change what they get.
func ask[T any](p *ports, call string, copied func(T) T, do func(*state) (T, error)) (T, error) {
	if p.replaying {
		if len(p.script) == 0 || p.script[0].call != call {
			panic(fmt.Sprintf("rebuilt operation calls %s, script %v: it is not deterministic", call, p.script))
		}
		a := p.script[0]
		p.script = p.script[1:]
		v, _ := a.value.(T)
		return copied(v), a.err
	}
	v, err := do(p.state)
	p.script = append(p.script, answer{call, copied(v), err})
	return v, err
}

func same[T any](v T) T { return v }

func copyPage[T any](p lifecycle.Page[T]) lifecycle.Page[T] {
	p.Items = slices.Clone(p.Items)
	return p
}

// write is ask for a write, whose answer may be lost.
func write[T any](p *ports, call string, do func(*state) (T, error)) (T, error) {
	return ask(p, call, same, func(s *state) (T, error) {
		v, err := do(s.mutable())
		if p.lose {
			p.lose, p.lost = false, true
			var none T
			return none, fmt.Errorf("%s: no answer: %w", call, lifecycle.ErrUnavailable)
		}
		return v, err
	})
}

func (p *ports) CreateInstance(_ context.Context, r lifecycle.Record) error {
	_, err := write(p, "create instance", func(s *state) (bool, error) { return true, s.store.CreateInstance(background, r) })
	return err
}

func (p *ports) UpdateInstance(_ context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	return write(p, "update instance", func(s *state) (lifecycle.Record, error) {
		before, _ := s.store.Instance(background, r.HostKey)
		after, err := s.store.UpdateInstance(background, r)
		if err == nil {
			s.checkRecord(p, before, after)
		}
		return after, err
	})
}

func (p *ports) ClaimInstance(_ context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	return write(p, "claim instance", func(s *state) (lifecycle.Record, error) {
		before, _ := s.store.Instance(background, c.HostKey)
		after, err := s.store.ClaimInstance(background, c)
		if err == nil {
			s.checkClaim(c, before)
			s.checkRecord(p, before, after)
		}
		return after, err
	})
}

func (p *ports) Instance(_ context.Context, hostKey string) (lifecycle.Record, error) {
	return ask(p, "read instance", same, func(s *state) (lifecycle.Record, error) { return s.store.Instance(background, hostKey) })
}

func (p *ports) Instances(_ context.Context, hostKeys []string) ([]lifecycle.Record, error) {
	return ask(p, "read instances", slices.Clone, func(s *state) ([]lifecycle.Record, error) { return s.store.Instances(background, hostKeys) })
}

func (p *ports) InstancesOfRun(_ context.Context, runID string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	p.named, _ = ask(p, "hosts that name a run", slices.Clone, func(s *state) ([]string, error) { return s.named(), nil })
	return ask(p, "list by-run", copyPage, func(s *state) (lifecycle.Page[lifecycle.Record], error) {
		return s.store.InstancesOfRun(background, runID, page)
	})
}

func (p *ports) PooledInstances(_ context.Context, q lifecycle.QueueName, trustKey string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	return ask(p, "list by-pool", copyPage, func(s *state) (lifecycle.Page[lifecycle.Record], error) {
		return s.store.PooledInstances(background, q, trustKey, page)
	})
}

func (p *ports) DueInstances(_ context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	return ask(p, "list due instances", copyPage, func(s *state) (lifecycle.Page[lifecycle.Record], error) {
		return s.store.DueInstances(background, now, page)
	})
}

func (p *ports) ListInstances(_ context.Context, f lifecycle.Filter, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	return ask(p, "list instances", copyPage, func(s *state) (lifecycle.Page[lifecycle.Record], error) {
		return s.store.ListInstances(background, f, page)
	})
}

// Reports shows every agent that has ever reported as alive: silence is the
// simulator's.
func (p *ports) Reports(_ context.Context, hostKeys []string) (map[string]lifecycle.Report, error) {
	got, err := ask(p, "read reports", maps.Clone, func(s *state) (map[string]lifecycle.Report, error) {
		reports, err := s.store.Reports(background, hostKeys)
		for key, report := range reports {
			report.HeartbeatAt = s.now
			reports[key] = report
		}
		return reports, err
	})
	for key, report := range got {
		p.busy[key] = report.Busy
	}
	return got, err
}

func (p *ports) AllReports(context.Context, lifecycle.PageOf) (lifecycle.Page[lifecycle.Report], error) {
	panic("no due sweep lists reports")
}

func (p *ports) DeleteReport(_ context.Context, hostKey string) error {
	_, err := write(p, "delete report", func(s *state) (bool, error) { return true, s.store.DeleteReport(background, hostKey) })
	return err
}

func (p *ports) CreateRequest(_ context.Context, q lifecycle.Request) error {
	_, err := write(p, "create request", func(s *state) (bool, error) { return true, s.store.CreateRequest(background, q) })
	return err
}

func (p *ports) UpdateRequest(_ context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	return write(p, "update request", func(s *state) (lifecycle.Request, error) {
		before, _ := s.store.Request(background, q.Repository, q.RunID, q.RequestID)
		after, err := s.store.UpdateRequest(background, q)
		if err == nil {
			s.checkRequest(p, before, after)
		}
		return after, err
	})
}

func (p *ports) Request(_ context.Context, repository, runID, requestID string) (lifecycle.Request, error) {
	return ask(p, "read request", same, func(s *state) (lifecycle.Request, error) {
		return s.store.Request(background, repository, runID, requestID)
	})
}

func (p *ports) RequestsOfRun(_ context.Context, repository, runID string) ([]lifecycle.Request, error) {
	return ask(p, "list requests of run", slices.Clone, func(s *state) ([]lifecycle.Request, error) {
		return s.store.RequestsOfRun(background, repository, runID)
	})
}

func (p *ports) DueRequests(_ context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Request], error) {
	return ask(p, "list due requests", copyPage, func(s *state) (lifecycle.Page[lifecycle.Request], error) {
		return s.store.DueRequests(background, now, page)
	})
}

// The history is for people: it decides nothing, and is not explored.

func (p *ports) AddEvents(context.Context, []lifecycle.Event) error { return nil }

func (p *ports) EventsOfRun(context.Context, string, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	panic("no operation reads the history")
}

func (p *ports) EventsSince(context.Context, lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	panic("no operation reads the history")
}

func (p *ports) LastEvent(context.Context) (string, error) { panic("no operation reads the history") }

// The lease only saves work: the explorer lets whoever wants to sweep.

func (p *ports) Lease(context.Context, string) (lifecycle.Lease, error) {
	panic("no lease is explored")
}

func (p *ports) TakeLease(context.Context, lifecycle.Lease) (lifecycle.Lease, error) {
	panic("no lease is explored")
}
