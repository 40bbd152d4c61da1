package awsfaults_test

import (
	"time"
)

// launched is how many machines the life of the fleet needs, whatever goes wrong with a
// call in it.
const launched = 3

// refreshes makes what the fleet needs in an empty account. What was made is all
// there, so the life of the fleet is the same afterwards.
func (w *world) refreshes() {
	w.t.Helper()
	w.must("refresh", w.fleet.NewRefresh(false))
	w.made = true
	again := w.fleet.NewRefresh(true)
	w.must("a dry run", again)
	if changes := again.Resources(); len(changes) > 0 {
		w.t.Errorf("after a refresh there is still to be done: %+v", changes)
	}
}

// life is that of a small fleet. Two runs want three of two warm hosts at the
// same time.
func (w *world) life() {
	w.t.Helper()
	cold := w.provision("101", 2)
	w.must("cold", cold)
	w.wantHosts("cold", 2, cold)
	w.must("release", w.release("101"))
	w.wantPooled("after the first release", 2)

	first, second := w.provision("102", 2), w.provision("103", 1)
	w.must("warm", first, second)
	w.wantHosts("warm", 3, first, second)
	w.must("release both", w.release("102"), w.release("103"))
	w.must("cloud sweep", w.fleet.NewCloudSweep())
	w.wantPooled("after the second release and a cloud sweep", launched)

	w.pass(6 * time.Minute) // the idle time is 5
	w.wantNothing("after the idle time")
	w.must("cloud sweep", w.fleet.NewCloudSweep())
	w.pass(time.Hour)
	w.wantNothing("an hour later")
	w.wantAccounts("101", "102", "103")
}
