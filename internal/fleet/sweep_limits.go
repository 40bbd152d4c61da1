package fleet

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// sweepAccounts is how many accounts a cloud sweep looks through: others have their
// turn in the next ones, and an account that is full is looked through by who finds
// it so.
const sweepAccounts = 20

// staleAfter is how old an entry is at least that has a sweep look through its
// account. A shorter time looks at hosts that were just taken; in a longer one room
// stays taken, as far as the account counts, that nobody uses.
const staleAfter = 5 * time.Minute

// limitsToLook chooses among the limits on whom machines and hosts are for, and on
// the pools.
func (f *Fleet) limitsToLook(machines []lifecycle.Machine, records []lifecycle.Record) []policy.Limit {
	var all []policy.Limit
	seen := map[string]bool{}
	add := func(limits ...policy.Limit) {
		for _, l := range limits {
			if !seen[l.LedgerName()] {
				seen[l.LedgerName()] = true
				all = append(all, l)
			}
		}
	}
	for _, m := range machines {
		if m.Repository != lifecycle.WarmRepository {
			add(f.limitsOf(m.Repository)...)
		}
	}
	for _, r := range records {
		if r.Repository != "" {
			add(f.limitsOf(r.Repository)...)
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(f.pools)) {
		if l, ok := f.maximumOf(pool); ok {
			add(l)
		}
	}
	if len(all) > sweepAccounts {
		f.ops.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:sweepAccounts]
	}
	return all
}

// lookThrough looks through one account, if it has entries that are old enough.
func (s *CloudSweep) lookThrough(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.limits) == 0 || s.Events.Dry {
		return op.Done, nil
	}
	l := s.limits[0]
	room, err := s.f.room(ctx, l)
	old := func(e lifecycle.Reservation) bool { return now.Sub(e.At) >= staleAfter }
	if err == nil && s.f.mayLook(room.Ledger, now) && slices.ContainsFunc(room.Ledger.Reservations, old) {
		err = s.f.lookThrough(ctx, room, now)
	}
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	s.limits = s.limits[1:]
	return op.Again, nil
}
