package policy

import (
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
)

// SpotBreaker says when a pool stops launching spot hosts for a while: EC2 has taken so many back that the
// next ones would not last either. The zero value never does.
type SpotBreaker struct {
	// Interruptions of so many hosts within Within open it for Pause. 0: never.
	Interruptions int
	Within, Pause time.Duration
}

// On reports whether there is a breaker at all.
func (p SpotBreaker) On() bool { return p.Interruptions > 0 }

// Open reports whether spot is paused now. A breaker that is to be open for longer than
// Pause was opened by a replica whose clock is ahead, or with a longer Pause: it counts
// once Pause remains of it, and the next interruption opens it again.
func (p SpotBreaker) Open(b breaker.Row, now time.Time) bool {
	return p.On() && now.Before(b.OpenUntil) && b.OpenUntil.Sub(now) <= p.Pause
}

// Heard counts the interruption of a host, once for each host, and reports whether that changed anything.
// While the breaker is open another interruption prolongs nothing: those are of hosts from before.
func (p SpotBreaker) Heard(b breaker.Row, instanceID string, now time.Time) (breaker.Row, bool) {
	known := func(i breaker.Interruption) bool { return i.InstanceID == instanceID }
	if !p.On() || slices.ContainsFunc(b.Interruptions, known) {
		return b, false
	}
	b.Interruptions = slices.DeleteFunc(slices.Clone(b.Interruptions), func(i breaker.Interruption) bool {
		return now.Sub(i.At) >= p.Within
	})
	b.Interruptions = append(b.Interruptions, breaker.Interruption{InstanceID: instanceID, At: now})
	if most := max(p.Interruptions, interruptedAtMost); len(b.Interruptions) > most {
		b.Interruptions = b.Interruptions[len(b.Interruptions)-most:]
	}
	if len(b.Interruptions) >= p.Interruptions && !p.Open(b, now) {
		b.OpenUntil = now.Add(p.Pause)
	}
	return b, true
}

// interruptedAtMost bounds the row of a breaker. A host that was dropped from the row and
// is announced again counts twice, which changes nothing while so many others count.
const interruptedAtMost = 200
