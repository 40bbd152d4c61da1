package process

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

//go:embed init.sh
var initScript []byte

// bootsAtOnce is how many hosts of an order are started side by side: enough to
// hide the wait for each init, few enough not to crowd out running jobs.
const bootsAtOnce = 16

// Launch starts the machines of an order. The same order, made again after a crash or at
// the same time, gets the same machines in their present state; one that has ended stays
// gone. An order is remembered for 24 h after its last machine ended.
func (c *Compute) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	plan, err := c.settle(ctx, order)
	if err != nil {
		return nil, err
	}
	launched := slices.Clone(plan.Machines)
	if err := c.bootAll(ctx, launched); err != nil {
		return nil, unavailable("launch order "+order.Token, err)
	}
	return launched, plan.Shortage()
}

// bootAll makes sure that machines which are not gone were started, and brings their states up to date.
func (c *Compute) bootAll(ctx context.Context, machines []lifecycle.Machine) error {
	boots, bootCtx := errgroup.WithContext(ctx)
	boots.SetLimit(bootsAtOnce)
	for _, m := range machines {
		boots.Go(func() error { return c.boot(bootCtx, c.host(m.InstanceID)) })
	}
	if err := boots.Wait(); err != nil {
		return err
	}
	for i, m := range machines {
		machines[i].State = c.state(c.host(m.InstanceID))
	}
	return nil
}

// settle records what the order becomes, unless another replica has, and makes the directories of its hosts.
// It is the only part that needs the root's lock: two orders must not get the same capacity.
func (c *Compute) settle(ctx context.Context, order lifecycle.LaunchOrder) (placement.Plan, error) {
	if err := ctx.Err(); err != nil {
		return placement.Plan{}, fmt.Errorf("launch order %s: %w", order.Token, err)
	}
	lock, err := lockFile(ctx, filepath.Join(c.opts.Root, "lock"))
	if err != nil {
		return placement.Plan{}, unavailable("launch order "+order.Token, err)
	}
	defer lock.Close()
	plan, err := c.planned(ctx, order)
	if err != nil {
		return plan, err
	}
	for _, m := range plan.Machines {
		if h := c.host(m.InstanceID); !h.exists() {
			if err := c.makeHost(h, m); err != nil {
				return plan, unavailable("launch order "+order.Token, err)
			}
		}
	}
	return plan, nil
}

// planned is the plan of the order: the stored one, or a new one, stored.
func (c *Compute) planned(ctx context.Context, order lifecycle.LaunchOrder) (placement.Plan, error) {
	path, now := c.orderPath(order.Token), c.opts.Now()
	stored, err := readOrder(path)
	switch {
	case err == nil:
		return stored.plan(), stored.plan().Repeats(order)
	case !errors.Is(err, fs.ErrNotExist):
		return placement.Plan{}, unavailable("launch order "+order.Token, err)
	}
	if err := c.prune(now); err != nil {
		c.log.Warn("ended hosts were not forgotten", logkey.Error, err)
	}
	ids, err := c.ids()
	if err != nil {
		return placement.Plan{}, unavailable("launch order "+order.Token, err)
	}
	live := slices.DeleteFunc(c.look(ctx, ids), isGone)
	plan, err := c.opts.Place(order, live, c.opts.Root, now)
	if err != nil {
		return plan, err
	}
	if err := writeOrder(path, plan, now); err != nil {
		return plan, unavailable("launch order "+order.Token, err)
	}
	return plan, nil
}

// makeHost makes a host's directory, whole or not at all.
func (c *Compute) makeHost(h host, m lifecycle.Machine) error {
	config, err := c.opts.AgentConfig(m, h.dir)
	if err != nil {
		return fmt.Errorf("configure host %s: %w", h.id, err)
	}
	tags, err := json.MarshalIndent(machineJSON(m), "", "  ")
	if err != nil {
		return fmt.Errorf("make host %s: %w", h.id, err)
	}
	// The root's lock is held, so what has this name was left by a crash.
	draft := host{id: h.id, dir: filepath.Join(c.opts.Root, "draft")}
	err = c.fill(draft, map[string][]byte{"machine.json": tags, "agentd.yaml": config, "init": initScript, "agentd.log": nil})
	if err == nil {
		err = os.Rename(draft.dir, h.dir)
	}
	if err != nil {
		return fmt.Errorf("make host %s: %w", h.id, errors.Join(err, os.RemoveAll(draft.dir)))
	}
	return nil
}

func (c *Compute) fill(draft host, files map[string][]byte) error {
	if err := os.RemoveAll(draft.dir); err != nil {
		return err
	}
	if err := os.Mkdir(draft.dir, 0o700); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(draft.path(name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
