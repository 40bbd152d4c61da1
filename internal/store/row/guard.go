package row

import "github.com/remuda-ci/remuda/internal/lifecycle"

// FleetHold returns h in the form of the store.
func FleetHold(h lifecycle.FleetHold) lifecycle.FleetHold {
	h.Until, h.SetAt = utc(h.Until), utc(h.SetAt)
	return h
}

// Breaker returns b in the form of the store.
func Breaker(b lifecycle.Breaker) lifecycle.Breaker {
	b.OpenUntil = utc(b.OpenUntil)
	b.Interruptions = list(b.Interruptions)
	for i := range b.Interruptions {
		b.Interruptions[i].At = utc(b.Interruptions[i].At)
	}
	return b
}

// Account returns a in the form of the store.
func Account(a lifecycle.QuotaLedger) lifecycle.QuotaLedger {
	a.AuditedAt = utc(a.AuditedAt)
	a.Reservations = list(a.Reservations)
	for i := range a.Reservations {
		a.Reservations[i].At, a.Reservations[i].HostKeys = utc(a.Reservations[i].At), list(a.Reservations[i].HostKeys)
	}
	return a
}
