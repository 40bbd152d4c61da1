package explore

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/store"
)

// orders are what an operator may do: drain a host, pause the pool, and resume it. An order reads one row and replaces it under its
// version, and begins again when another write came between. So it takes effect at one moment, and is one move.
func (x *explorer) orders(s *state) {
	for host := range maxHosts {
		x.drains(s, host)
	}
	p, _ := at[pause.Pause](x.values, &s.world, pauseCell)
	switch {
	case p.On():
		x.order(s, *s, "resume", "the pool", func(now time.Time) error { return x.setPause(false, now) })
	case s.used.pauses < x.most.pauses:
		after := *s
		after.used.pauses++
		x.order(s, after, "pause", "the pool", func(now time.Time) error { return x.setPause(true, now) })
	}
}

// drains drains a host that does not leave yet.
func (x *explorer) drains(s *state, host int) {
	r, ok := at[lifecycle.Record](x.values, &s.world, instanceCell+cell(host))
	if !ok || r.State == lifecycle.StateTerminated || r.Retiring || s.used.drains >= x.most.drains {
		return
	}
	after := *s
	after.used.drains++
	x.order(s, after, "drain", r.HostKey, func(now time.Time) error {
		_, err := x.fleet.Drain(background, fleet.DrainTarget{InstanceID: r.InstanceID}, "", "an operator", now)
		return err
	})
}

func (x *explorer) setPause(on bool, now time.Time) error {
	_, err := x.fleet.SetPause(background, fleet.DefaultPool, on, "", "an operator", now)
	return err
}

// order visits the states after an order.
func (x *explorer) order(from *state, after state, kind, what string, give func(now time.Time) error) {
	x.doing(kind, what)
	*x.ports = ports{x: x, world: from.world, busy: map[string]bool{}}
	if err := give(x.ports.now()); err != nil {
		x.ports.broken("unexpected error", "%s %s: %v", kind, what, err)
	}
	after.world = x.ports.world
	x.land(from, after, -1, -1, kind, what)
}

// pauseRead is what an operation last read of the pool's pause; empty: it has not read it.
type pauseRead string

const (
	readOn  pauseRead = "on"
	readOff pauseRead = "off"
)

// readPause notes what an operation reads; nil: no pause was ever written.
func (p *ports) readPause(row store.Row) {
	p.pauseRead = readOff
	if row, ok := row.(*pause.Pause); ok && row.On() {
		p.pauseRead = readOn
	}
}

// checkPaused checks that an operation that gives out or launches a host of a paused pool had read that the pool was not paused. One
// that read so before the pause, and goes on since, cannot know.
func (p *ports) checkPaused(doing string) {
	if now, _ := in[pause.Pause](p, pauseCell); now.On() && p.pauseRead != readOff {
		p.broken("paused", "an operation %s while %s; the pause that it read last was %q", doing, now, p.pauseRead)
	}
}

// neverHeld are the rows of a fleet whose pool may be paused. It is never held, and no breaker of it opens.
type neverHeld struct{ store.Store }

func (neverHeld) FleetHold(context.Context) (fleethold.Hold, error) { return fleethold.Hold{}, nil }

func (neverHeld) Breaker(context.Context, string) (breaker.Row, error) { return breaker.Row{}, nil }

// guards are nil where no operator pauses the pool. Operations then read no pause, as in a fleet without guards.
func (b Bounds) guards(p *ports) fleet.GuardStore {
	if b.Pauses == 0 {
		return nil
	}
	return neverHeld{store.New(p)}
}

// timing has an operation that may meet a pause read it each time, and look again at any time: so it finds the pool resumed.
func (b Bounds) timing() fleet.Timing {
	t := fleet.Timing{Takeover: unit, Relaunch: 100 * unit}
	if b.Pauses > 0 {
		t.Relaunch, t.PauseLag = -1, -1
	}
	return t
}
