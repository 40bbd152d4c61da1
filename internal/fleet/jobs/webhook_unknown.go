package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// unknownPause is the first pause before GitHub is asked again about a run that it did not know. The API
	// may know a run some seconds later than its webhooks. Each further pause is twice as long.
	unknownPause = webhookRetry
	// unknownFor is how long after its receipt a webhook of an unknown run is given up: by then GitHub has been
	// asked five times, and its API has long caught up with its webhooks.
	unknownFor = 15 * time.Minute
	// unknownPerMinute is how many such questions are repeated in a minute for one repository, by one replica:
	// 600 an hour of the 5,000 calls that a credential has. Each may cost two calls.
	unknownPerMinute = 10
	// unknownAtMost bounds the sizes of the maps in unknownRuns. At the bound a map is emptied.
	unknownAtMost = 4096
)

// unknownRuns is what is remembered of runs that GitHub does not know. It is guarded by Jobs.mu.
type unknownRuns struct {
	// next is when GitHub is asked again about a run, by lifecycle.RunKey. All webhooks of a run share a question.
	next map[string]time.Time
	// planned counts the questions that are planned for a minute and a repository.
	planned map[plannedMinute]int
}

type plannedMinute struct {
	repository string
	at         time.Time
}

// plan returns when to ask again about a run: after the pause, in the first minute that has room for another
// question of the repository. A time that is planned already stays. After the deadline nothing is asked.
func (u *unknownRuns) plan(repository, runID string, pause time.Duration, now, deadline time.Time) time.Time {
	key := lifecycle.RunKey(repository, runID)
	if at := u.next[key]; at.After(now) {
		return at
	}
	at := now.Add(pause)
	minute := func() plannedMinute { return plannedMinute{repository, at.Truncate(time.Minute)} }
	for u.planned[minute()] >= unknownPerMinute && at.Before(deadline) {
		at = at.Truncate(time.Minute).Add(time.Minute)
	}
	if !at.Before(deadline) {
		return deadline
	}
	u.forget(now)
	u.planned[minute()]++
	u.next[key] = at
	return at
}

// forget drops what has passed, once there is much of it.
func (u *unknownRuns) forget(now time.Time) {
	if len(u.next) >= unknownAtMost {
		clear(u.next)
	}
	if len(u.planned) < unknownAtMost {
		return
	}
	for m := range u.planned {
		if m.at.Before(now.Add(-time.Minute)) {
			delete(u.planned, m)
		}
	}
	if len(u.planned) >= unknownAtMost {
		clear(u.planned)
	}
}

// knownOrDue returns lifecycle.ErrNotFound if GitHub did not know the run of this webhook, and is not to be
// asked again now.
func (h *webhookOp) knownOrDue(row lifecycle.Job, now time.Time) error {
	h.env.mu.Lock()
	defer h.env.mu.Unlock()
	key := lifecycle.RunKey(row.Repository, row.RunID)
	if _, known := h.env.forks[key]; known {
		return nil
	}
	past := h.w.Unknown > 0 && !now.Before(h.w.ReceivedAt.Add(unknownFor))
	if past || h.env.unknown.next[key].After(now) {
		return fmt.Errorf("run %s of %s: %w", row.RunID, row.Repository, lifecycle.ErrNotFound)
	}
	return nil
}

// putOff has the jobs sweep work on a webhook later whose run GitHub does not know, or gives it up. Otherwise a
// few hundred of them would use up the calls that GitHub allows, which other runs need.
func (h *webhookOp) putOff(row lifecycle.Job, now time.Time) (op.Progress, error) {
	deadline := h.w.ReceivedAt.Add(unknownFor)
	if !now.Before(deadline) {
		why := lifecycle.Because(lifecycle.ReasonRunUnknown, "GitHub knows no run %s of %s", row.RunID, row.Repository)
		return h.refuse(row, why, now)
	}
	w := h.w
	pause := min(unknownPause<<min(w.Unknown, 8), unknownFor)
	w.Unknown++
	h.env.mu.Lock()
	w.DueAt = h.env.unknown.plan(row.Repository, row.RunID, pause, now, deadline)
	h.env.mu.Unlock()
	return h.Then(func(ctx context.Context, _ time.Time) (op.Progress, error) {
		if _, err := h.env.Options.Store.UpdateWebhook(ctx, w); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
			return op.Again, fmt.Errorf("put off webhook %s: %w", w.DeliveryID, err)
		}
		h.env.Log.Info("webhook put off: its run is unknown to github", logkey.Delivery, w.DeliveryID, logkey.Run, row.RunID, logkey.Repository, row.Repository)
		return op.Done, nil
	})
}
