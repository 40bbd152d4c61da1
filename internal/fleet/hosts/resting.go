package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Group is the pooled hosts that the same runs could take, as the index by-pool has them: those of a pool, a queue and a trust key.
type Group struct {
	Pool     string
	Queue    lifecycle.QueueName
	TrustKey string
}

// String names the group.
func (g Group) String() string {
	return fmt.Sprint(g.Pool, " ", g.Queue.ResourceClass, " ", g.Queue.UsageClass, " ", g.TrustKey)
}

// GroupOf is the group of a pooled host.
func GroupOf(r lifecycle.Record) Group {
	return Group{r.Pool, lifecycle.QueueName{ResourceClass: r.ResourceClass, UsageClass: r.UsageClass}, r.TrustKey}
}

// Newest are the newest hosts of a group, as many as stay awake.
func (hs *Hosts) Newest(ctx context.Context, g Group) ([]lifecycle.Record, error) {
	newest, err := hs.Store.NewestPooled(ctx, g.Pool, g.Queue, g.TrustKey, hs.Policy(g.Pool).Awake)
	if err != nil {
		return nil, fmt.Errorf("list the newest hosts of pool %s: %w", g.Pool, err)
	}
	return newest, nil
}

// Asleep are the hosts of a group that rest although they are to be awake, with the decision to wake them.
func (hs *Hosts) Asleep(ctx context.Context, g Group, now time.Time) ([]lifecycle.Record, lifecycle.Decision, error) {
	newest, err := hs.Newest(ctx, g)
	if err != nil {
		return nil, lifecycle.Decision{}, err
	}
	asleep, d := policy.Asleep(hs.Policy(g.Pool), newest, now)
	return asleep, d, nil
}

// SetRest has a host rest, or wakes it and puts it into its queue. A lost race is not an error: then the record stays as another wrote it.
func (hs *Hosts) SetRest(ctx context.Context, j *op.Recorder, r lifecycle.Record, d lifecycle.Decision, now time.Time) error {
	if _, err := hs.ApplyChecked(ctx, j, r, d, now); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		return err
	}
	return nil
}
