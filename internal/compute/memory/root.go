package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// RefuseRoot sets why no root volume is replaced; empty: they are.
func (c *Compute) RefuseRoot(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rootRefused = why
}

// EndRoot ends a replacement that is under way. It reports whether there was one. The machine runs on: what is on its disk is the caller's to know.
func (c *Compute) EndRoot(name string, to lifecycle.RootTaskState) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.roots, func(t lifecycle.RootTask) bool { return t.ID == name && t.State == lifecycle.RootReplacing })
	if i < 0 {
		return false
	}
	roots := slices.Clone(c.roots) // a clone of the cloud has the old ones
	roots[i].State, roots[i].Said = to, string(to)
	c.roots = roots
	return true
}

// ReplaceRoot begins to replace the root volume of a machine that runs: it is replaced at once, or with SlowEnd by EndRoot. The replacement is named by its token.
func (c *Compute) ReplaceRoot(ctx context.Context, instanceID, token string) (lifecycle.RootTask, error) {
	what := "replace the root volume of machine " + instanceID
	if err := ctx.Err(); err != nil {
		return lifecycle.RootTask{}, fmt.Errorf("%s: %w", what, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.roots, func(t lifecycle.RootTask) bool { return t.ID == token }); i >= 0 {
		if c.roots[i].InstanceID != instanceID {
			return lifecycle.RootTask{}, fmt.Errorf("%s: %w: its token is of another machine", what, lifecycle.ErrRefused)
		}
		return c.roots[i], nil
	}
	switch m, known := c.machines[instanceID]; {
	case !known || m.State != lifecycle.MachineRunning:
		return lifecycle.RootTask{}, fmt.Errorf("%s: %w: it does not run", what, lifecycle.ErrRefused)
	case c.rootRefused != "":
		return lifecycle.RootTask{}, fmt.Errorf("%s: %w: %s", what, lifecycle.ErrRefused, c.rootRefused)
	}
	task := lifecycle.RootTask{ID: token, InstanceID: instanceID, State: lifecycle.RootReplaced, Said: string(lifecycle.RootReplaced)}
	if c.opts.SlowEnd {
		task.State, task.Said = lifecycle.RootReplacing, string(lifecycle.RootReplacing)
	}
	c.roots = append(slices.Clip(c.roots), task)
	return task, nil
}

// RootTasks lists the replacements of the root volumes of machines.
func (c *Compute) RootTasks(ctx context.Context, instanceIDs []string) ([]lifecycle.RootTask, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list replacements of root volumes: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.roots), func(t lifecycle.RootTask) bool { return !slices.Contains(instanceIDs, t.InstanceID) }), nil
}
