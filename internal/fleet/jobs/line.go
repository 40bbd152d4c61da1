package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy"
)

// readWaiting reads as many waiting jobs as the pool has slots for, including the slots that may still be
// assigned. If there are none it reads no job, and leaves more set, since there may be waiting jobs.
func (b *reconcilePool) readWaiting(ctx context.Context, now time.Time) error {
	b.waiting, b.more = nil, true
	started, unannounced := 0, 0
	for _, fact := range b.facts {
		if !fact.Slot.UnannouncedAt.IsZero() {
			unannounced++ // and its job is read as waiting
		}
		if fact.Phase == policy.SlotStarted || fact.Phase == policy.SlotReturned {
			started++
		}
	}
	served := max(b.pool.Maximum-started, 0)
	if served == 0 {
		return nil
	}
	return b.readPages(ctx, served+unannounced+waitingBeyond, now)
}

// manyJobs is how many jobs are read at once behind those that wait for the next month.
const manyJobs = 1000

// readPages reads jobs until as many may be served. Jobs whose repository has used up its budget are not among them, and are not counted: others may be behind
// any number of them. Those at the head of the line are read again by a full reconciliation alone.
func (b *reconcilePool) readPages(ctx context.Context, most int, now time.Time) error {
	page := lifecycle.PageOf{After: b.env.behindBudgets(b.name, b.full, now), Limit: most}
	for found, head := 0, true; ; {
		got, err := b.env.Options.Store.WaitingJobs(ctx, b.name, page)
		if err != nil {
			return fmt.Errorf("list the waiting jobs of pool %s: %w", b.name, err)
		}
		spent := 0
		for _, j := range got.Items {
			budget, err := b.env.Provision.Quota.BudgetAgainst(ctx, j.Repository, now)
			switch {
			case err != nil:
				return err
			case budget != nil:
				b.env.note(j.ID, budget.Reason())
				spent++
			case !j.PassedOver(now):
				b.env.noteAway(j.ID, now)
				b.waiting = append(b.waiting, j)
			}
		}
		found += len(got.Items) - spent
		if head = head && spent == len(got.Items); head && got.Next != "" {
			b.env.setBehindBudgets(b.name, got.Next, now)
		}
		if b.more = got.Next != ""; !b.more || len(b.waiting) >= most || found >= waitingAtMost {
			return nil
		}
		if page.After = got.Next; spent > 0 {
			page.Limit = manyJobs
		}
	}
}

// placeInMonth is a place in the line of a pool, which counts in one month.
type placeInMonth struct{ place, month string }

// behindBudgets is the place in the line of a pool from which on jobs are read. When all is looked at it is the head, and so it is in a new month.
func (js *Jobs) behindBudgets(pool string, all bool, now time.Time) string {
	js.mu.Lock()
	defer js.mu.Unlock()
	if all || js.behind[pool].month != monthOf(now) {
		delete(js.behind, pool)
	}
	return js.behind[pool].place
}

func (js *Jobs) setBehindBudgets(pool, place string, now time.Time) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.behind[pool] = placeInMonth{place, monthOf(now)}
}

func monthOf(now time.Time) string { return meter.MonthOf(meter.DayOf(now)) }
