package ports

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Observer hears what is worth measuring.
type Observer interface {
	// Claimed: a request had its hosts from the pool, d after it began.
	Claimed(d time.Duration)
	// Registered: a host was ready, d after it was claimed or launched.
	Registered(d time.Duration)
	// Released: a host was pooled, d after its release.
	Released(d time.Duration)
	// Swept: a sweep ended after d, with err or well.
	Swept(sweep string, d time.Duration, err error)
	// Decided: an action was decided, or carried out, for a reason.
	Decided(action lifecycle.Action, code lifecycle.ReasonCode)
	// RunnersEnd: when the versions of actions/runner that hosts have get no
	// jobs any more, as far as that is known.
	RunnersEnd(at map[string]time.Time)
}

type SilentObserver struct{}

func (SilentObserver) Claimed(time.Duration) {}

func (SilentObserver) Registered(time.Duration) {}

func (SilentObserver) Released(time.Duration) {}

func (SilentObserver) Swept(string, time.Duration, error) {}

func (SilentObserver) Decided(lifecycle.Action, lifecycle.ReasonCode) {}

func (SilentObserver) RunnersEnd(map[string]time.Time) {}
