package explore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/store"
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
	// pauseRead is what it last read of the pool's pause.
	pauseRead pauseRead
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

// The explored rows are the records, the requests and the pause of the pool, each in a cell of its own.

// cellOf is the cell of a row; false: the world has none with this key.
func cellOf(k *store.Kind, key store.Key) (cell, bool) {
	switch k {
	case store.Instances.Kind:
		host := hostOf(key[0])
		return instanceCell + cell(host), host >= 0
	case store.Requests.Kind:
		ask := askOf(key[2])
		return requestCell + cell(ask), ask >= 0
	case store.Pauses.Kind:
		return pauseCell, key[0] == fleet.DefaultPool
	}
	panic("no " + k.Name + " is explored")
}

// rowIn is a copy of the row in a cell; nil: there is none.
func (p *ports) rowIn(c cell) store.Row {
	switch v := p.x.values.all[p.look(c)].v.(type) {
	case lifecycle.Record:
		return store.Instances.Clone(&v)
	case lifecycle.Request:
		return store.Requests.Clone(&v)
	case pause.Pause:
		return store.Pauses.Clone(&v)
	}
	return nil
}

// row is a copy of the row with a key; nil: there is none.
func (p *ports) row(k *store.Kind, key store.Key) store.Row {
	c, ok := cellOf(k, key)
	if !ok {
		return nil
	}
	return p.rowIn(c)
}

// Create writes a new row.
func (p *ports) Create(_ context.Context, k *store.Kind, row store.Row) error {
	_, err := write(p, "create "+k.Name, func() (done, error) {
		if p.row(k, k.Key(row)) != nil {
			return done{}, fmt.Errorf("create %s: %w", k.Name, lifecycle.ErrExists)
		}
		p.putRow(k, plainRow(k, row))
		return done{}, nil
	})
	return err
}

// Update replaces a row and holds it against the rules.
func (p *ports) Update(_ context.Context, k *store.Kind, row store.Row) error {
	_, err := write(p, "update "+k.Name, func() (store.Row, error) {
		before := p.row(k, k.Key(row))
		var version int64 // 0 where there is no row
		if before != nil {
			version = *k.Version(before)
		}
		if before == nil && !k.Upsert || version != *k.Version(row)-1 {
			return nil, fmt.Errorf("update %s: %w", k.Name, lifecycle.ErrConflict)
		}
		row = plainRow(k, row)
		p.putRow(k, row)
		switch before := before.(type) {
		case *lifecycle.Record:
			p.checkRecord(*before, *row.(*lifecycle.Record))
		case *lifecycle.Request:
			p.checkRequest(*before, *row.(*lifecycle.Request))
		}
		return row, nil
	})
	return err
}

// plainRow is a copy of a row without the time of its host, which decides nothing, and whose readings are not explored.
func plainRow(k *store.Kind, row store.Row) store.Row {
	row = k.Copy(row)
	if r, ok := row.(*lifecycle.Record); ok {
		r.Meter = ""
	}
	return row
}

func (p *ports) putRow(k *store.Kind, row store.Row) {
	c, _ := cellOf(k, k.Key(row))
	switch row := k.Copy(row).(type) {
	case *lifecycle.Record:
		p.put(c, *row)
	case *lifecycle.Request:
		p.put(c, *row)
	case *pause.Pause:
		p.put(c, *row)
	}
}

// ClaimInstance takes a pooled host.
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
		p.checkPaused("claims " + c.HostKey)
		claimed.Version++
		p.putRow(store.Instances.Kind, &claimed)
		p.checkRecord(before, claimed)
		return *store.Instances.Copy(&claimed).(*lifecycle.Record), nil
	})
}

func (p *ports) record(hostKey string) (lifecycle.Record, bool) {
	host := hostOf(hostKey)
	if host < 0 {
		return lifecycle.Record{}, false
	}
	return in[lifecycle.Record](p, instanceCell+cell(host))
}

// Get reads one row.
func (p *ports) Get(_ context.Context, k *store.Kind, key store.Key) (store.Row, error) {
	copied := func(row store.Row) store.Row {
		if row == nil {
			return nil
		}
		return k.Clone(row)
	}
	row, err := ask(p, "read "+k.Name, copied, func() (store.Row, error) {
		row := p.row(k, key)
		if row == nil {
			return nil, fmt.Errorf("read %s: %w", k.Name, lifecycle.ErrNotFound)
		}
		return row, nil
	})
	if k == store.Pauses.Kind {
		p.readPause(row)
	}
	return row, err
}

// GetMany reads the rows that are there, in order of their keys.
func (p *ports) GetMany(_ context.Context, k *store.Kind, keys []store.Key) ([]store.Row, error) {
	return ask(p, "read many of "+k.Name, slices.Clone, func() ([]store.Row, error) {
		var got []store.Row
		byKey := func(a, b store.Key) int { return slices.Compare(a[:], b[:]) }
		for _, key := range slices.Compact(slices.SortedFunc(slices.Values(keys), byKey)) {
			if row := p.row(k, key); row != nil {
				got = append(got, row)
			}
		}
		return got, nil
	})
}

// List is a listing in one page.
func (p *ports) List(_ context.Context, q store.Query) ([]store.Row, string, error) {
	if q.Index == store.InstancesByRun {
		p.named, _ = ask(p, "hosts that name a run", slices.Clone, func() ([]string, error) { return p.namingRuns(), nil })
	}
	rows, err := ask(p, "list "+q.Index.Name, slices.Clone, func() ([]store.Row, error) {
		first, n := instanceCell, maxHosts
		if q.Index.Kind() == store.Requests.Kind {
			first, n = requestCell, maxAsks
		}
		var got []store.Row
		for i := range n {
			if row := p.rowIn(first + cell(i)); row != nil && q.Matches(row) {
				got = append(got, row)
			}
		}
		// Cells are in the order of keys.
		slices.SortStableFunc(got, func(a, b store.Row) int { return q.Index.At(a).Compare(q.Index.At(b)) })
		return got, nil
	})
	return rows, "", err
}

// listed are the records that pass, in the order of their keys.
func (p *ports) listed(pass func(lifecycle.Record) bool) []lifecycle.Record {
	var got []lifecycle.Record
	for h := range maxHosts {
		if r, ok := in[lifecycle.Record](p, instanceCell+cell(h)); ok && pass(r) {
			got = append(got, r)
		}
	}
	return got
}

// isDue reports whether the time of a row to be looked at has come.
func isDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// Keys are read by no operation that is explored.
func (p *ports) Keys(context.Context, store.Query) ([]store.Key, error) {
	panic("no keys are explored")
}

// Count is called by no operation that is explored.
func (p *ports) Count(context.Context, store.Query, int) ([]int, error) {
	panic("no counts are explored")
}

// SeeOnce is called by no operation that is explored.
func (p *ports) SeeOnce(context.Context, string, string, time.Time) error {
	panic("nothing that is seen once is explored")
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

// The history is for people: ExplainRun and WatchFleet read it, and no operation
// that is explored does. Sweeps remember in memory what they have recorded already,
// which affects only what they add. So the history is not explored: it reads as
// empty, as when all of it has expired, and no decision may depend on it.

func (p *ports) AddEvents(context.Context, []lifecycle.Event) error { return nil }

func (p *ports) EventsOfRun(context.Context, string, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	return lifecycle.Page[lifecycle.Event]{}, nil
}

func (p *ports) EventsOfInstance(context.Context, string, time.Time, time.Time, int) (lifecycle.HostHistory, error) {
	return lifecycle.HostHistory{}, nil
}

func (p *ports) EventsSince(context.Context, lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	return lifecycle.Page[lifecycle.Event]{}, nil
}

func (p *ports) LastEvent(context.Context) (string, error) { return "", nil }
