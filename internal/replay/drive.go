package replay

import (
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
)

// driven is an operation that is stepped until it is done.
type driven struct {
	op   fleet.Op
	over func(error)
	// hosts are those that it waits for; nil: none in particular.
	hosts func() []string

	// While it polls for what its hosts say, it is not stepped until they say something: it would read the same again. It waits since
	// a time, for turns of a length. turn numbers its waits.
	polls bool
	since time.Time
	every time.Duration
	turn  int
	// looks is how many turns it still takes since they said something: now and then it reads other rows in a turn.
	looks int
}

// looksAfter are the turns after which an operation has seen what a host said.
const looksAfter = 2

// patience is how long an operation that polls is left alone: it has deadlines too. One without hosts also waits for what happens elsewhere.
// warm is the longest time without a sweep over warm pools.
type patience struct{ withHosts, without, warm time.Duration }

// usual is not the 5 s after which a request reads its records in place of reports: then it would never look at these.
var usual = patience{4 * time.Second, time.Second, warmRest}

// drive steps an operation until it waits, fails or is done. Others act while it waits.
func (w *world) drive(d *driven) {
	for w.failed == nil {
		p, err := d.op.Step(w.ctx, w.clock.now)
		switch {
		case err != nil || p.Done:
			d.turn++
			d.over(err)
			return
		case p.Wait > 0:
			w.wait(d, p.Wait)
			return
		}
	}
}

// wait has an operation go on after a time.
func (w *world) wait(d *driven, wait time.Duration) {
	d.turn++
	d.polls = false
	at := w.clock.now.Add(wait)
	if d.looks > 0 {
		d.looks--
	} else if d.hosts != nil && wait%w.timing.Poll == 0 {
		d.polls, d.since, d.every = true, w.clock.now, wait
		keys := d.hosts()
		for _, key := range keys {
			if h := w.hosts[key]; h != nil {
				h.waiting = d
			}
		}
		alone := w.patience.withHosts
		if len(keys) == 0 {
			alone = w.patience.without
		}
		at = d.nextTurn(w.clock.now.Add(alone))
	}
	w.goOn(d, at)
}

func (w *world) goOn(d *driven, at time.Time) {
	turn := d.turn
	w.at(at, func() {
		if d.turn == turn {
			w.drive(d)
		}
	})
}

// nextTurn is the first turn at a time or after it.
func (d *driven) nextTurn(at time.Time) time.Time {
	turns := max(1, (at.Sub(d.since)+d.every-1)/d.every)
	return d.since.Add(turns * d.every)
}

// wake has the operation look that waits for a host which has something new.
func (w *world) wake(h *host) {
	d := h.waiting
	switch {
	case d == nil:
		return
	case !d.polls:
		d.looks = looksAfter
		return
	}
	d.polls, d.looks = false, looksAfter
	d.turn++
	w.goOn(d, d.nextTurn(w.clock.now))
}
