package lifecycle

import "time"

// MayRest reports whether hosts of the pool may rest at all: those that no run has used yet, or those that one has. A host that
// registers ahead of need does not rest, since its reads are few already.
func (p Policy) MayRest(unused bool) bool {
	if p.RestAfter <= 0 {
		return false
	}
	if unused {
		return p.WarmTime > p.RestAfter
	}
	return p.IdleTime > p.RestAfter && p.Standby != StandbyListening
}

// Waited reports whether a pooled host has waited for so long that its rest is to be decided on.
func (p Policy) Waited(r Record, now time.Time) bool {
	return r.Pooled() && r.Standby == nil && p.MayRest(r.Unused()) && reached(r.PooledAt.Add(p.RestAfter), now)
}

// RestLook is when a pooled host without a registration is looked at next: at the end of its time, and before that for its rest. Each
// look is as far away as the host has waited, so a host that waits for hours costs few looks.
func (p Policy) RestLook(r Record, now time.Time) time.Time {
	end := earliest(r.Threshold, r.agesAt(p))
	if !p.MayRest(r.Unused()) {
		return end
	}
	return earliest(end, now.Add(max(p.RestAfter, now.Sub(r.PooledAt))))
}
