package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// replacements is the file of a host with the tokens of the replacements that are done, a line each.
const replacements = "replacements"

// launchFiles are what a host was launched with, what is kept for people, and what it is locked and marked by: another replica may end it in the meantime. All
// else is its root volume.
var launchFiles = []string{
	"machine.json", "agentd.yaml", "init", "lock", "agentd.log", "agentd.log.1", "stopping", "stopped", "ending", "ended", "bypass-removal", replacements,
}

// ReplaceRoot deletes all that a host has on its disk, as if it had the volume that it was launched with, and boots it. If it was cut short, a repeat goes on. It is
// done when it returns.
func (c *Compute) ReplaceRoot(ctx context.Context, instanceID, token string) (lifecycle.RootTask, error) {
	what := "replace the root volume of machine " + instanceID
	if err := ctx.Err(); err != nil {
		return lifecycle.RootTask{}, fmt.Errorf("%s: %w", what, err)
	}
	h := c.host(instanceID)
	if state := c.state(h); state == lifecycle.MachineGone || state == lifecycle.MachineEnding {
		return lifecycle.RootTask{}, fmt.Errorf("%s: %w: it is %s", what, lifecycle.ErrRefused, state)
	}
	if !slices.Contains(h.replaced(), token) {
		if err := errors.Join(c.halt(ctx, h), h.empty()); err != nil {
			return lifecycle.RootTask{}, unavailable(what, err)
		}
		if err := safefile.Replace(h.path(replacements), []byte(strings.Join(append(h.replaced(), token), "\n")), 0o600, true); err != nil {
			return lifecycle.RootTask{}, unavailable(what, err)
		}
		c.log.Info("root volume of a host is replaced", logkey.Instance, instanceID)
	}
	if c.state(h) == lifecycle.MachineStopped {
		if err := c.Start(ctx, instanceID); err != nil {
			return lifecycle.RootTask{}, err
		}
	}
	return h.task(token), nil
}

// RootTasks lists the replacements of the root volumes of hosts.
func (c *Compute) RootTasks(ctx context.Context, instanceIDs []string) (tasks []lifecycle.RootTask, _ error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list replacements of root volumes: %w", err)
	}
	for _, id := range instanceIDs {
		h := c.host(id)
		if !h.exists() {
			continue
		}
		for _, token := range h.replaced() {
			tasks = append(tasks, h.task(token))
		}
	}
	return tasks, nil
}

func (h host) task(token string) lifecycle.RootTask {
	return lifecycle.RootTask{ID: token, InstanceID: h.id, State: lifecycle.RootReplaced, Said: string(lifecycle.RootReplaced)}
}

// replaced are the tokens of the replacements that are done.
func (h host) replaced() []string {
	text, err := safefile.Read(h.path(replacements))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// empty deletes what a halted host has on its disk.
func (h host) empty() error {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(launchFiles, e.Name()) {
			err = errors.Join(err, os.RemoveAll(h.path(e.Name())))
		}
	}
	return err
}
