package sweeps

import (
	"context"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// staleAfter is how old a reservation must be for a sweep to audit its ledger. A shorter time
// audits hosts that were just taken; with a longer one room stays reserved that no host uses.
const staleAfter = 5 * time.Minute

// lookThrough looks through one account, if it has entries that are old enough.
func (s *CloudSweep) lookThrough(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.limits) == 0 || s.Events.Dry {
		return op.Done, nil
	}
	l := s.limits[0]
	room, err := s.env.Quota.Read(ctx, l)
	old := func(e lifecycle.Reservation) bool { return now.Sub(e.At) >= staleAfter }
	if err == nil && s.env.Quota.MayAudit(room.Ledger, now) && slices.ContainsFunc(room.Ledger.Reservations, old) {
		err = s.env.Quota.Audit(ctx, room, now)
	}
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	s.limits = s.limits[1:]
	return op.Again, nil
}
