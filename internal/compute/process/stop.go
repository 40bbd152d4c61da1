package process

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Stop stops a host as if its power was cut: every process is killed, and what it has on disk stays. None hibernates. After an error the host is stopping,
// and the next look at it continues.
func (c *Compute) Stop(ctx context.Context, instanceID string, _ bool) error {
	what := "stop machine " + instanceID
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	h := c.host(instanceID)
	switch c.state(h) {
	case lifecycle.MachineGone, lifecycle.MachineEnding, lifecycle.MachineStopped:
		return nil
	}
	if err := c.halt(ctx, h); err != nil {
		return unavailable(what, err)
	}
	c.log.Info("host is stopped", logkey.Instance, instanceID)
	return nil
}

// halt leaves nothing of a host but its disk. A host without a pid of its init is stopped too: nothing boots it while it is marked.
func (c *Compute) halt(ctx context.Context, h host) error {
	if err := h.mark("stopping"); err != nil {
		return err
	}
	if err := c.kill(ctx, []string{h.id}); err != nil {
		return err
	}
	if err := errors.Join(h.remove("init.pid"), h.remove("booted")); err != nil {
		return err
	}
	if err := h.mark("stopped"); err != nil {
		return err
	}
	return h.remove("stopping")
}

// Start boots a stopped host. If it was cut short, a repeat goes on: the host is pending until then.
func (c *Compute) Start(ctx context.Context, instanceID string) error {
	what := "start machine " + instanceID
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	h := c.host(instanceID)
	switch c.state(h) {
	case lifecycle.MachineGone, lifecycle.MachineEnding:
		return fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	case lifecycle.MachineStopping:
		return unavailable(what, errors.New("it is still stopping"))
	case lifecycle.MachineStopped:
		if err := h.remove("stopped"); err != nil {
			return unavailable(what, err)
		}
	}
	if err := c.boot(ctx, h); err != nil {
		return unavailable(what, err)
	}
	return nil
}

func (h host) remove(name string) error {
	if err := os.Remove(h.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
