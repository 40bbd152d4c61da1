package lifecycle

import "time"

// The marks of scale-down on a record are OrphanAt, IdleDetectedAt, and, once it
// is to end the host, ScaleDownAt, with Retiring beside it. They speak of one
// assignment, and go with it; a host that was to be ended stays Retiring.

// ScalingDown reports whether scale-down has begun to end the host: its registration may be deleted already.
func (r Record) ScalingDown() bool { return !r.ScaleDownAt.IsZero() && r.State != StateTerminated }

// BeginScaleDown marks a host that scale-down is to end, which is not Retiring for another reason.
func (r *Record) BeginScaleDown(now time.Time) {
	r.Retiring, r.ScaleDownAt = true, now
	if r.IdleDetectedAt.IsZero() {
		r.IdleDetectedAt = now
	}
}

// UndoScaleDown takes back that the host was read as idle and is to be ended.
// Who retires for another reason goes on doing so.
func (r *Record) UndoScaleDown() {
	if r.ScalingDown() {
		r.Retiring = false
	}
	r.IdleDetectedAt, r.ScaleDownAt = time.Time{}, time.Time{}
}

// Orphan reports whether GitHub was seen not to have the host though it should.
func (r Record) Orphan() bool { return !r.OrphanAt.IsZero() }

func (r *Record) forgetMarks() {
	r.OrphanAt, r.IdleDetectedAt, r.ScaleDownAt = time.Time{}, time.Time{}, time.Time{}
}

// ServingSince is since when the host has been there for its assignment: its launch, or of one that came out
// of the pool when it was claimed, respectively became ready. Zero: not known.
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
