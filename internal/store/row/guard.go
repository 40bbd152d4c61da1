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
	b.Interrupted = list(b.Interrupted)
	for i := range b.Interrupted {
		b.Interrupted[i].At = utc(b.Interrupted[i].At)
	}
	return b
}

// Account returns a in the form of the store.
func Account(a lifecycle.Account) lifecycle.Account {
	a.LookedAt = utc(a.LookedAt)
	a.Entries = list(a.Entries)
	for i := range a.Entries {
		a.Entries[i].At, a.Entries[i].HostKeys = utc(a.Entries[i].At), list(a.Entries[i].HostKeys)
	}
	return a
}
