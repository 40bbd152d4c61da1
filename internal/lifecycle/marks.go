package lifecycle

import "time"

// The marks of scale-down on a record are OrphanAt, IdleDetectedAt, and, once it
// is to end the host, Retiring beside IdleDetectedAt. They speak of one
// assignment, and go with it.

// ScalingDown reports whether scale-down has begun to end the host: its
// registration may be deleted already.
func (r Record) ScalingDown() bool {
	return r.Retiring && !r.IdleDetectedAt.IsZero() && r.State != StateTerminated
}

// Orphan reports whether GitHub was seen not to have the host though it should.
func (r Record) Orphan() bool { return !r.OrphanAt.IsZero() }

func (r *Record) forgetMarks() { r.OrphanAt, r.IdleDetectedAt = time.Time{}, time.Time{} }

// ServingSince is since when the host has been there for its assignment: its
// launch, or of one that came out of the pool when it was claimed, respectively
// became ready. Zero: not known.
func (r Record) ServingSince(p Policy) time.Time {
	since := r.LaunchedAt
	if since.IsZero() {
		since = r.CreatedAt
	}
	reused := r.Assignment > 1
	switch {
	case reused && r.State == StateRunning && !r.RuntimeEndsAt.IsZero():
		return r.RuntimeEndsAt.Add(-r.maxRuntime(p))
	case reused && r.State == StateClaimed && !r.Threshold.IsZero():
		return r.Threshold.Add(-p.ClaimTimeout)
	}
	return since
}
