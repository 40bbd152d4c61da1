package github

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/retry"
)

// GitHub's secondary limits, by docs.github.com (rate limits for the REST API) and what its staff says of
// registrations (actions/runner#1339): 10,000 registrations an hour; 900 points a minute for one endpoint, at
// 5 a write, which is 180 writes; 80 writes a minute that make content; 100 calls at once. All of them hold
// for a token or an App. A bucket lets through what it holds at once and then its rate, so that no minute has
// more than their sum. Each replica has buckets of its own: GitHub's own limits are what they share.
const (
	// 150 a minute and 16 at once: at most 166 in any minute, and 9,016 an hour.
	registrationsPerMinute = 150
	registrationsAtOnce    = 16
	// Deletions and tokens create no content as far as GitHub documents it. They stay
	// below the limit for content anyway: at most 80 in any minute.
	writesPerMinute = 70
	writesAtOnce    = 10
	// callsAtOnce leaves half of what GitHub allows to other replicas.
	callsAtOnce = 50
	// maxPause is how long a call may wait for its turn. It is half of what a call may take at all.
	maxPause = callTimeout / 2
)

// pace is which bucket a call draws from.
type pace int

const (
	reads pace = iota // reads are bounded by the budget alone
	writes
	registrations
)

// pacer spreads the calls of a credential.
type pacer struct {
	buckets map[pace]*rate.Limiter
	slots   chan struct{}
}

func newPacer() *pacer {
	return &pacer{
		buckets: map[pace]*rate.Limiter{
			writes:        rate.NewLimiter(writesPerMinute/60.0, writesAtOnce),
			registrations: rate.NewLimiter(registrationsPerMinute/60.0, registrationsAtOnce),
		},
		slots: make(chan struct{}, callsAtOnce),
	}
}

// enter waits for a call's turn and takes a slot, which leave gives back.
func (p *pacer) enter(ctx context.Context, of pace) error {
	if bucket := p.buckets[of]; bucket != nil {
		turn := bucket.Reserve()
		wait := turn.Delay()
		if wait > maxPause {
			turn.Cancel()
			return &restError{why: "calls are spread to stay within GitHub's secondary rate limits", wait: wait}
		}
		if retry.Sleep(ctx, wait) != nil {
			turn.Cancel()
			return ctx.Err()
		}
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pacer) leave() { <-p.slots }
