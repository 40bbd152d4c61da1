package sweeps

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// closerAtOnce is how many hosts a sweep has in memory at once with all that is known of them, which is some KiB of each. With
// so many one call of the store or the cloud carries as many as it can; with 100,000 hosts that are silent, more would be hundreds of MiB.
const closerAtOnce = 1000

// closer are the hosts that a sweep looks closer at, so many at once.
type closer struct {
	env *Sweeps
	// loaded are the next ones, and keys those that come after them.
	loaded []lifecycle.Facts
	keys   []string
}

// begin takes the hosts to look at, and loads the first of them. reports are theirs; what is loaded later has reports of its own.
func (c *closer) begin(ctx context.Context, keys []string, reports map[string]lifecycle.Report, now time.Time) error {
	c.keys = keys
	return c.load(ctx, reports, now)
}

// next is the host to look at, nil if there is none any more.
func (c *closer) next(ctx context.Context, now time.Time) (*lifecycle.Facts, error) {
	for len(c.loaded) == 0 && len(c.keys) > 0 {
		reports, err := c.env.Hosts.Reports(ctx, c.some(), now)
		if err != nil {
			return nil, err
		}
		if err := c.load(ctx, reports, now); err != nil {
			return nil, err
		}
	}
	if len(c.loaded) == 0 {
		return nil, nil
	}
	return &c.loaded[0], nil
}

// drop is done with the host that next has returned.
func (c *closer) drop() { c.loaded = c.loaded[1:] }

func (c *closer) some() []string { return c.keys[:min(len(c.keys), closerAtOnce)] }

func (c *closer) load(ctx context.Context, reports map[string]lifecycle.Report, now time.Time) (err error) {
	some := c.some()
	if c.loaded, err = c.env.Hosts.LoadFactsWithCloud(ctx, some, reports, now); err == nil {
		c.keys = c.keys[len(some):]
	}
	return err
}

// recordsOf reads the records of hosts, so many at once, and gives each to do.
func (sw *Sweeps) recordsOf(ctx context.Context, keys []string, do func(lifecycle.Record)) error {
	for {
		some := keys[:min(len(keys), closerAtOnce)]
		records, err := sw.Store.Instances(ctx, some)
		if err != nil {
			return fmt.Errorf("read hosts: %w", err)
		}
		for _, r := range records {
			do(r)
		}
		if keys = keys[len(some):]; len(keys) == 0 {
			return nil
		}
	}
}
