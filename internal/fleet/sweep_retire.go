package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// outdated are the hosts whose key is not the one that a machine launched now
// would get: the role of the hosts was made anew, and the credentials of the
// old one do not last.
func (f *Fleet) outdated(machines []lifecycle.Machine, records map[string]lifecycle.Record) []lifecycle.Record {
	var old []lifecycle.Record
	for _, m := range machines {
		r, ok := records[m.HostKey]
		if ok && m.HostKey != f.hostKey(m.InstanceID) && !r.Retiring && r.State != lifecycle.StateTerminated {
			old = append(old, r)
		}
	}
	return old
}

// retire marks the next outdated host: no run gets it any more, and it leaves
// when it is next idle. One that somebody else wrote meanwhile is left to the
// next sweep.
func (s *CloudSweep) retire(ctx context.Context, now time.Time) (Progress, error) {
	if len(s.outdated) == 0 {
		s.next = s.host
		return again, nil
	}
	r := s.outdated[0]
	const why = "its role was made anew: it leaves when it is next idle"
	s.journal.decide(r.InstanceID, lifecycle.ActionRetire, why)
	if !s.journal.dry {
		before := r
		r.Retiring, r.UpdatedAt, r.DueAt = true, now, now
		stored, err := s.f.store.UpdateInstance(ctx, r)
		switch {
		case err == nil:
			s.journal.add(transitionEvent(before, stored, lifecycle.Decision{Action: lifecycle.ActionRetire, Why: why}, now))
		case !errors.Is(err, lifecycle.ErrLost):
			return again, fmt.Errorf("retire host %s: %w", r.InstanceID, err)
		}
	}
	s.outdated = s.outdated[1:]
	return again, nil
}
