package awsfaults_test

import (
	"time"
)

// launched is how many machines the life of the fleet needs, whatever goes wrong with a
// call in it.
const launched = 3

// phase is a part of a life. It ends in a state that is settled, and checks that.
// An expiry is several phases, one for each of its sweeps: after a fault in one of
// them, the next sweep goes on with what is left. The last of them checks that no more
// sweeps are needed, however many of them had a fault.
type phase struct {
	name string
	play func(w *world)
}

// refreshes make what the fleet needs in an empty account. What was made is all
// there, so the life of the fleet is the same afterwards.
var refreshes = []phase{
	{"refresh", func(w *world) {
		w.must("refresh", w.fleet.NewRefresh(false))
		w.made = true
	}},
	{"a dry run", func(w *world) {
		again := w.fleet.NewRefresh(true)
		w.must("a dry run", again)
		if changes := again.Resources(); len(changes) > 0 {
			w.t.Errorf("after a refresh there is still to be done: %+v", changes)
		}
	}},
}

// life is that of a small fleet. Two runs want three of two warm hosts at the
// same time.
var life = []phase{
	{"cold", func(w *world) {
		cold := w.provision("101", 2)
		w.must("cold", cold)
		w.wantHosts("cold", 2, cold)
	}},
	{"release", func(w *world) {
		w.must("release", w.release("101"))
		w.wantPooled("after the first release", 2)
	}},
	{"warm", func(w *world) {
		first, second := w.provision("102", 2), w.provision("103", 1)
		w.must("warm", first, second)
		w.wantHosts("warm", 3, first, second)
	}},
	{"release both", func(w *world) {
		w.must("release both", w.release("102"), w.release("103"))
		w.wantPooled("after the second release", launched)
	}},
	{"sweep", func(w *world) {
		w.must("cloud sweep", w.fleet.NewCloudSweep())
		w.wantPooled("after the second release and a cloud sweep", launched)
	}},
	{"expiry, first sweep", func(w *world) {
		w.letPass(6 * time.Minute) // the idle time is 5
		w.sweepDue()
	}},
	{"expiry, second sweep", (*world).sweepDue},
	{"expiry, third sweep", func(w *world) {
		w.sweepDue()
		w.wantNothing("after the idle time")
	}},
	{"afterwards", func(w *world) {
		w.must("cloud sweep", w.fleet.NewCloudSweep())
		w.pass(time.Hour)
		w.wantNothing("an hour later")
		w.wantAccounts("101", "102", "103")
	}},
}
