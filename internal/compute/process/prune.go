package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/safefile"
)

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
