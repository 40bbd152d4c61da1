package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/safefile"
	"github.com/remuda-ci/remuda/internal/tree"
)

// Terminate ends machines as if their power was cut: every process is killed, and what they had on disk is
// removed. After an error some of them are still ending, and the next Describe, List or Terminate continues.
func (c *Compute) Terminate(ctx context.Context, instanceIDs []string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("terminate machines: %w", err)
	}
	ids := slices.DeleteFunc(slices.Clone(instanceIDs), func(id string) bool {
		return c.state(c.host(id)) == lifecycle.MachineGone
	})
	slices.Sort(ids)
	if err := c.end(ctx, slices.Compact(ids)); err != nil {
		return unavailable("terminate machines", err)
	}
	return nil
}

// EndAll ends every host of the root, also those of other replicas. The caller makes sure
// that no replica launches another.
func (c *Compute) EndAll(ctx context.Context) error {
	ids, err := c.ids()
	if err != nil {
		return unavailable("end all machines", err)
	}
	return c.Terminate(ctx, ids)
}

// end makes hosts gone. Each is first marked, so that nothing starts in it any
// more, and marked as ended when nothing of it is left.
func (c *Compute) end(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	var wrong []error
	marked := map[string]bool{}
	for _, id := range ids {
		if err := c.host(id).mark("ending"); err != nil {
			wrong = append(wrong, fmt.Errorf("mark host %s: %w", id, err))
			continue
		}
		marked[id] = true
	}
	// This includes those that could not be marked, for example on a full disk: a host
	// that runs forever is worse than one that has to be looked at again.
	if err := c.kill(ctx, ids); err != nil {
		return errors.Join(append(wrong, err)...)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !marked[id] })
	return errors.Join(append(wrong, c.buryAll(ctx, ids)...)...)
}

// burialsAtOnce is how many dead hosts are removed side by side: most of the
// time goes into waiting for the disk.
const burialsAtOnce = 8

// buryAll removes dead hosts. Those that are left when ctx ends keep what they had on disk
// until the next look at them.
func (c *Compute) buryAll(ctx context.Context, ids []string) []error {
	wrong := make([]error, len(ids))
	var burials errgroup.Group
	burials.SetLimit(burialsAtOnce)
	for i, id := range ids {
		burials.Go(func() error {
			err := ctx.Err()
			if err == nil {
				err = c.bury(c.host(id))
			}
			if err != nil {
				wrong[i] = fmt.Errorf("clear host %s: %w", id, err)
				return nil // the others go on
			}
			c.log.Info("host has ended", logkey.Instance, id)
			return nil
		})
	}
	_ = burials.Wait() // each has left its own error
	return wrong
}

func (h host) mark(name string) error {
	f, err := os.OpenFile(h.path(name), os.O_CREATE|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// tombstone are the files that stay of a host that has ended.
var tombstone = []string{"machine.json", "ending", "ended"}

// bury removes what a dead host had on disk, except its tombstone. Links are removed and
// never followed, wherever the host's jobs made them point.
func (c *Compute) bury(h host) error {
	if err := tree.Clear(h.dir, tree.Owner{UID: os.Getuid(), GID: os.Getgid()}, 0o700, tombstone...); err != nil {
		return err
	}
	return safefile.Replace(h.path("ended"), []byte(c.opts.Now().UTC().Format(time.RFC3339)), 0o600, false)
}

// tombstoneAge is how long an ended host and its order are remembered. An order is made
// again at most within the half hour of its request.
const tombstoneAge = 24 * time.Hour

// prune removes hosts that ended more than tombstoneAge ago, and orders of that age
// without a host. The caller holds the root's lock.
func (c *Compute) prune(now time.Time) error {
	ids, err := c.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		h := c.host(id)
		data, err := safefile.Read(h.path("ended"))
		if err != nil {
			continue
		}
		ended, err := time.Parse(time.RFC3339, string(data))
		if err != nil || now.Sub(ended) > tombstoneAge {
			if err := os.RemoveAll(h.dir); err != nil {
				return fmt.Errorf("forget host: %w", err)
			}
		}
	}
	return c.pruneOrders(now)
}

func (c *Compute) pruneOrders(now time.Time) error {
	entries, err := os.ReadDir(c.ordersDir())
	if err != nil {
		return fmt.Errorf("list orders: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(c.ordersDir(), e.Name())
		o, err := readOrder(path)
		if err != nil || now.Sub(o.PlannedAt) <= tombstoneAge || slices.ContainsFunc(o.Machines, c.known) {
			continue
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("forget order: %w", err)
		}
	}
	return nil
}

func (c *Compute) known(m machineJSON) bool { return c.host(m.InstanceID).exists() }
