package explore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

var background = context.Background()

// ports are the fleet's, over a world. While an operation is rebuilt they give
// the answers that it got before; afterwards they write down the new ones, and
// on which cells of the world they depend.
type ports struct {
	x         *explorer
	world     world
	looked    []look
	script    []answer
	replaying bool
	// lose: the answer of the step's write is lost; lost: it was.
	lose, lost bool
	// busy is what the operation last read of each host.
	busy map[string]bool
	// named are the hosts that named a run when it last listed those of its.
	named []string
}

// look is a cell that was looked at, with what was in it.
type look struct {
	cell cell
	id   id
}

// answer is what a call came back with.
type answer struct {
	call  string
	value any
	err   error
}

// look is the value in a cell, on which the step depends from now on.
func (p *ports) look(c cell) id {
	if !slices.ContainsFunc(p.looked, func(l look) bool { return l.cell == c }) {
		p.looked = append(p.looked, look{c, p.world[c]})
	}
	return p.world[c]
}

func (p *ports) put(c cell, v any) {
	p.look(c)
	p.world[c] = p.x.values.id(v)
}

func (p *ports) now() time.Time { return instant(p.look(clockCell)) }

// instant is the time on the clock.
func instant(clock id) time.Time { return epoch.Add(time.Duration(clock) * unit) }

// in is the value in a cell: false, there is none.
func in[T any](p *ports, c cell) (T, bool) {
	v, ok := p.x.values.all[p.look(c)].v.(T)
	return v, ok
}

// ask makes one call. Answers are copied, since operations change what they get.
func ask[T any](p *ports, call string, copied func(T) T, do func() (T, error)) (T, error) {
	if p.replaying {
		if len(p.script) == 0 || p.script[0].call != call {
			panic(fmt.Sprintf("rebuilt operation calls %s, script %v: it is not deterministic", call, p.script))
		}
		a := p.script[0]
		p.script = p.script[1:]
		v, _ := a.value.(T)
		return copied(v), a.err
	}
	v, err := do()
	p.script = append(p.script, answer{call, copied(v), err})
	return v, err
}

func same[T any](v T) T { return v }

func copyPage[T any](p lifecycle.Page[T]) lifecycle.Page[T] {
	p.Items = slices.Clone(p.Items)
	return p
}

// write is ask for a write, whose answer may be lost.
func write[T any](p *ports, call string, do func() (T, error)) (T, error) {
	return ask(p, call, same, func() (T, error) {
		v, err := do()
		if p.lose {
			p.lose, p.lost = false, true
			var none T
			return none, fmt.Errorf("%s: no answer: %w", call, lifecycle.ErrUnavailable)
		}
		return v, err
	})
}

// done is the answer of a call that only succeeds or fails.
type done struct{}

func (p *ports) CreateInstance(_ context.Context, r lifecycle.Record) error {
	_, err := write(p, "create instance", func() (done, error) {
		c := instanceCell + cell(hostOf(r.HostKey))
		if _, ok := in[lifecycle.Record](p, c); ok {
			return done{}, fmt.Errorf("create instance: %w", lifecycle.ErrExists)
		}
		r.Version = 1
		p.put(c, row.Record(r))
		return done{}, nil
	})
	return err
}

func (p *ports) UpdateInstance(_ context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	return write(p, "update instance", func() (lifecycle.Record, error) {
		before, ok := p.record(r.HostKey)
		if !ok || before.Version != r.Version {
			return lifecycle.Record{}, fmt.Errorf("update instance: %w", lifecycle.ErrConflict)
		}
		return p.putRecord(before, r), nil
	})
}

func (p *ports) ClaimInstance(_ context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	return write(p, "claim instance", func() (lifecycle.Record, error) {
		before, ok := p.record(c.HostKey)
		if !ok || !c.Holds(before) {
			return lifecycle.Record{}, fmt.Errorf("claim instance: %w", lifecycle.ErrConflict)
		}
		claimed, err := before.Claimed(c)
		if err != nil {
			return lifecycle.Record{}, fmt.Errorf("claim instance: %w", err)
		}
		p.checkClaim(c, before)
		return p.putRecord(before, claimed), nil
	})
}

// putRecord writes the next version of a record and holds it against the rules.
func (p *ports) putRecord(before, r lifecycle.Record) lifecycle.Record {
	r.Version++
	p.put(instanceCell+cell(hostOf(r.HostKey)), row.Record(r))
	p.checkRecord(before, r)
	return row.Record(r)
}

func (p *ports) record(hostKey string) (lifecycle.Record, bool) {
	host := hostOf(hostKey)
	if host < 0 {
		return lifecycle.Record{}, false
	}
	return in[lifecycle.Record](p, instanceCell+cell(host))
}

func (p *ports) Instance(_ context.Context, hostKey string) (lifecycle.Record, error) {
	return ask(p, "read instance", row.Record, func() (lifecycle.Record, error) {
		r, ok := p.record(hostKey)
		if !ok {
			return r, fmt.Errorf("read instance: %w", lifecycle.ErrNotFound)
		}
		return r, nil
	})
}

func (p *ports) Instances(_ context.Context, hostKeys []string) ([]lifecycle.Record, error) {
	return ask(p, "read instances", slices.Clone, func() ([]lifecycle.Record, error) {
		var got []lifecycle.Record
		for _, key := range slices.Compact(slices.Sorted(slices.Values(hostKeys))) {
			if r, ok := p.record(key); ok {
				got = append(got, row.Record(r))
			}
		}
		return got, nil
	})
}

// listed are the records that pass, in order of their keys.
func (p *ports) listed(pass func(lifecycle.Record) bool) []lifecycle.Record {
	var got []lifecycle.Record
	for h := range maxHosts {
		if r, ok := in[lifecycle.Record](p, instanceCell+cell(h)); ok && pass(r) {
			got = append(got, row.Record(r))
		}
	}
	return got
}

// list is a listing of records in one page, ordered by a time and then by key.
func (p *ports) list(call string, by func(lifecycle.Record) time.Time, pass func(lifecycle.Record) bool) (lifecycle.Page[lifecycle.Record], error) {
	return ask(p, call, copyPage, func() (lifecycle.Page[lifecycle.Record], error) {
		got := p.listed(pass)
		slices.SortStableFunc(got, func(a, b lifecycle.Record) int { return by(a).Compare(by(b)) })
		return lifecycle.Page[lifecycle.Record]{Items: got}, nil
	})
}

func byKey(lifecycle.Record) time.Time { return epoch }

func (p *ports) InstancesOfRun(_ context.Context, runID string, _ lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	p.named, _ = ask(p, "hosts that name a run", slices.Clone, func() ([]string, error) { return p.namingRuns(), nil })
	return p.list("list by-run", byKey, func(r lifecycle.Record) bool { return runID != "" && r.RunID == runID })
}

func (p *ports) PooledInstances(_ context.Context, pool string, q lifecycle.QueueName, trustKey string, _ lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	pooledAt := func(r lifecycle.Record) time.Time { return r.PooledAt }
	return p.list("list by-pool", pooledAt, func(r lifecycle.Record) bool {
		return !r.PooledAt.IsZero() && r.Pool == pool && r.TrustKey == trustKey && r.ResourceClass == q.ResourceClass && r.UsageClass == q.UsageClass
	})
}

func (p *ports) DueInstances(_ context.Context, now time.Time, _ lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	dueAt := func(r lifecycle.Record) time.Time { return r.DueAt }
	return p.list("list due instances", dueAt, func(r lifecycle.Record) bool { return isDue(r.DueAt, now) })
}

// isDue reports whether the time has come.
func isDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

func (p *ports) ListInstances(context.Context, lifecycle.Filter, lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	panic("no operation lists instances for people")
}

// Reports shows every agent that has ever reported as alive: silence is the
// simulator's.
func (p *ports) Reports(_ context.Context, hostKeys []string) (map[string]lifecycle.Report, error) {
	got, err := ask(p, "read reports", maps.Clone, func() (map[string]lifecycle.Report, error) {
		reports := map[string]lifecycle.Report{}
		for _, key := range hostKeys {
			if report, ok := in[lifecycle.Report](p, reportCell+cell(hostOf(key))); ok {
				report.HeartbeatAt = p.now()
				reports[key] = report
			}
		}
		return reports, nil
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
	_, err := write(p, "delete report", func() (done, error) {
		c := reportCell + cell(hostOf(hostKey))
		p.look(c)
		p.world[c] = 0
		return done{}, nil
	})
	return err
}

func (p *ports) CreateRequest(_ context.Context, q lifecycle.Request) error {
	_, err := write(p, "create request", func() (done, error) {
		if _, ok := p.request(q.RequestID); ok {
			return done{}, fmt.Errorf("create request: %w", lifecycle.ErrExists)
		}
		q.Version = 1
		p.put(requestCell+cell(askOf(q.RequestID)), row.Request(q))
		return done{}, nil
	})
	return err
}

func (p *ports) request(requestID string) (lifecycle.Request, bool) {
	ask := askOf(requestID)
	if ask < 0 {
		return lifecycle.Request{}, false
	}
	return in[lifecycle.Request](p, requestCell+cell(ask))
}

func (p *ports) UpdateRequest(_ context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	return write(p, "update request", func() (lifecycle.Request, error) {
		before, ok := p.request(q.RequestID)
		if !ok || before.Version != q.Version {
			return lifecycle.Request{}, fmt.Errorf("update request: %w", lifecycle.ErrConflict)
		}
		q.Version++
		p.put(requestCell+cell(askOf(q.RequestID)), row.Request(q))
		p.checkRequest(before, q)
		return row.Request(q), nil
	})
}

func (p *ports) Request(_ context.Context, _, _, requestID string) (lifecycle.Request, error) {
	return ask(p, "read request", row.Request, func() (lifecycle.Request, error) {
		q, ok := p.request(requestID)
		if !ok {
			return q, fmt.Errorf("read request: %w", lifecycle.ErrNotFound)
		}
		return q, nil
	})
}

func (p *ports) requests(pass func(lifecycle.Request) bool) []lifecycle.Request {
	var got []lifecycle.Request
	for i := range maxAsks {
		if q, ok := in[lifecycle.Request](p, requestCell+cell(i)); ok && pass(q) {
			got = append(got, row.Request(q))
		}
	}
	return got
}

func (p *ports) RequestsOfRun(_ context.Context, _, runID string) ([]lifecycle.Request, error) {
	return ask(p, "list requests of run", slices.Clone, func() ([]lifecycle.Request, error) {
		return p.requests(func(q lifecycle.Request) bool { return q.RunID == runID }), nil
	})
}

func (p *ports) DueRequests(_ context.Context, now time.Time, _ lifecycle.PageOf) (lifecycle.Page[lifecycle.Request], error) {
	return ask(p, "list due requests", copyPage, func() (lifecycle.Page[lifecycle.Request], error) {
		got := p.requests(func(q lifecycle.Request) bool { return isDue(q.DueAt, now) })
		slices.SortStableFunc(got, func(a, b lifecycle.Request) int { return a.DueAt.Compare(b.DueAt) })
		return lifecycle.Page[lifecycle.Request]{Items: got}, nil
	})
}

// The history is for people: ExplainRun and WatchFleet read it, and no operation
// that is explored does. What sweeps have told of already they keep in memory of
// their own, and it decides nothing but what is added. So it is not explored, and
// reads as when all of it has expired, which no decision may mind.

func (p *ports) AddEvents(context.Context, []lifecycle.Event) error { return nil }

func (p *ports) EventsOfRun(context.Context, string, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	return lifecycle.Page[lifecycle.Event]{}, nil
}

func (p *ports) EventsOfInstance(context.Context, string, time.Time, int) (lifecycle.HostHistory, error) {
	return lifecycle.HostHistory{}, nil
}

func (p *ports) EventsSince(context.Context, lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	return lifecycle.Page[lifecycle.Event]{}, nil
}

func (p *ports) LastEvent(context.Context) (string, error) { return "", nil }

// The lease only saves work: the explorer lets any replica sweep.

func (p *ports) Lease(context.Context, string) (lifecycle.Lease, error) {
	panic("no lease is explored")
}

func (p *ports) TakeLease(context.Context, lifecycle.Lease) (lifecycle.Lease, error) {
	panic("no lease is explored")
}
