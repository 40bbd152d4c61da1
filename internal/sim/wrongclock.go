package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// wrongClockLives: in every eleventh life machines of replicas boot with a clock that is minutes or hours off. The answers of the store show it.
const wrongClockLives = 11

func (l *life) wrongClocks() {
	if l.Config.Seed%wrongClockLives != 6 {
		return
	}
	const mean = 4 * time.Minute
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		l.wrongClock()
		l.After(l.Exp(mean, 5*mean), again)
	}
	l.After(l.Exp(mean, 5*mean), again)
}

// wrongClock has the clock of one replica wrong for some minutes.
func (l *life) wrongClock() {
	r := l.anyReplica()
	if r == nil || r.off != 0 {
		return
	}
	l.Coverage.Faults[engine.FaultReplicaClock]++
	off := l.Between(2*time.Minute, 8*time.Hour)
	if l.Rand.IntN(3) == 0 {
		off = -off
	}
	r.reboot(off)
	l.After(l.Between(2*time.Minute, 8*time.Minute), func() { r.reboot(0) })
}

// rightClocks ends the fault.
func (l *life) rightClocks() {
	for _, r := range l.replicas {
		r.reboot(0)
	}
}

// reboot has the machine of a replica boot with a clock that is off. A clock that is set while controld runs is left to the tests of internal/fleet:
// controld measures the time that passes apart from it, and the simulator has no such clock.
func (r *replica) reboot(off time.Duration) {
	if r.off == off {
		return
	}
	r.off = off
	r.l.Kill(r.proc, "its machine boots with a clock that is "+off.String()+" off")
}
