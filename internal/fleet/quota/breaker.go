package quota

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// CountInterruption counts the interruption of a spot host for the breaker of its
// pool. It is safe to repeat: each host counts once.
func (ld *Ledger) CountInterruption(ctx context.Context, r lifecycle.Record, now time.Time) error {
	spot := ld.Pools[r.Pool].SpotBreaker
	if ld.Guards == nil || !spot.On() || r.UsageClass != lifecycle.UsageSpot || r.State == lifecycle.StateTerminated {
		return nil
	}
	return op.Rewrite("breaker of pool "+r.Pool, func() error {
		b, err := ld.Guards.Breaker(ctx, r.Pool)
		if err != nil {
			return fmt.Errorf("read the breaker of pool %s: %w", r.Pool, err)
		}
		next, news := spot.Heard(b, r.InstanceID, now)
		if !news {
			return nil
		}
		if _, err = ld.Guards.UpdateBreaker(ctx, next); err != nil {
			return fmt.Errorf("write the breaker of pool %s: %w", r.Pool, err)
		}
		if next.OpenUntil.After(b.OpenUntil) {
			ld.Log.Warn("too many spot hosts were interrupted", logkey.Pool, r.Pool, logkey.Hosts, len(next.Interruptions), logkey.Until, next.OpenUntil)
		}
		return nil
	})
}

// SpotPaused returns why and until when the breaker of its pool pauses the spot hosts that a
// request launches next; an empty why: it does not.
func (ld *Ledger) SpotPaused(ctx context.Context, q lifecycle.Request, now time.Time) (why string, until time.Time, err error) {
	spot := ld.Pools[q.Spec.Pool].SpotBreaker
	if ld.Guards == nil || !spot.On() || UsageOf(q) != lifecycle.UsageSpot {
		return "", until, nil
	}
	b, err := ld.Guards.Breaker(ctx, q.Spec.Pool)
	if err != nil {
		return "", until, fmt.Errorf("read the breaker of pool %s: %w", q.Spec.Pool, err)
	}
	if !spot.Open(b, now) {
		return "", until, nil
	}
	return fmt.Sprintf("EC2 interrupted %s or more of pool %s within %s", plural.Of(spot.Interruptions, "spot host", "spot hosts"), q.Spec.Pool, spot.Within), b.OpenUntil, nil
}

// ThroughBreaker applies the breaker of its pool to the next launch of a request: on-demand
// hosts if the request allows them, and otherwise spot hosts in spite of the breaker. why is
// empty if the breaker does not matter.
func (ld *Ledger) ThroughBreaker(ctx context.Context, q lifecycle.Request, now time.Time) (_ lifecycle.Request, why string, err error) {
	why, until, err := ld.SpotPaused(ctx, q, now)
	switch {
	case err != nil || why == "":
		return q, "", err
	case !q.Spec.AllowOnDemand:
		return q, why + "; launching spot hosts anyway, since the request allows no others", nil
	}
	q.OnDemand = true
	return q, fmt.Sprintf("%s: on-demand hosts are launched until %s", why, hosts.ClockTime(until)), nil
}

// UsageOf is the usage class that a request launches now.
func UsageOf(q lifecycle.Request) lifecycle.UsageClass {
	if q.OnDemand {
		return lifecycle.UsageOnDemand
	}
	return q.Spec.UsageClass
}

// RefusedFor is how long a pool launches no host of an image after GitHub refused the version of its runner. GitHub has refused
// versions by mistake for hours (actions/runner#3405, actions/runner#4613), so it is tried again.
const RefusedFor = 30 * time.Minute

// VersionRefused notes that GitHub refuses the version of actions/runner on the hosts of an image, so that the pool launches no
// more of them for RefusedFor. It is a hosts.AfterFunc: a note that cannot be written is made with the next refused host.
func (ld *Ledger) VersionRefused(ctx context.Context, _ lifecycle.Action, r, after lifecycle.Record) {
	if ld.Guards == nil || after.ReasonCode != lifecycle.ReasonVersionRefused || r.ReasonCode == lifecycle.ReasonVersionRefused {
		return
	}
	now := after.UpdatedAt
	err := op.Rewrite("breaker of pool "+r.Pool, func() error {
		b, err := ld.Guards.Breaker(ctx, r.Pool)
		if err != nil {
			return fmt.Errorf("read the breaker of pool %s: %w", r.Pool, err)
		}
		if refuses(b, r.TemplateVersion, now.Add(RefusedFor/2)) { // it was noted a moment ago
			return nil
		}
		ld.Log.Error("GitHub refuses the version of the runner: no host of this image is launched; renew the image",
			logkey.Pool, r.Pool, logkey.Instance, r.InstanceID, logkey.Until, now.Add(RefusedFor), logkey.Reason, after.Reason)
		b.RefusedTemplate, b.RefusedAt = r.TemplateVersion, now
		_, err = ld.Guards.UpdateBreaker(ctx, b)
		return err
	})
	if err != nil {
		ld.Log.Warn("refused version of the runner not noted", logkey.Pool, r.Pool, logkey.Error, err)
	}
}

// refuses reports whether the breaker keeps the pool from launching hosts from a version of its launch template.
func refuses(b breaker.Row, template string, now time.Time) bool {
	return !b.RefusedAt.IsZero() && b.RefusedTemplate == template && now.Sub(b.RefusedAt).Abs() < RefusedFor
}

// ImageRefused returns why a pool launches no host from a version of its launch template now; empty: it may.
func (ld *Ledger) ImageRefused(ctx context.Context, pool, template string, now time.Time) (why string, err error) {
	if ld.Guards == nil {
		return "", nil
	}
	b, err := ld.Guards.Breaker(ctx, pool)
	if err != nil {
		return "", fmt.Errorf("read the breaker of pool %s: %w", pool, err)
	}
	if !refuses(b, template, now) {
		return "", nil
	}
	return fmt.Sprintf("GitHub refuses the version of the runner in the image of pool %s: none of it is launched until %s, or until its image is renewed",
		pool, hosts.ClockTime(b.RefusedAt.Add(RefusedFor))), nil
}
