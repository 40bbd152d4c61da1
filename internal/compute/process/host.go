package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// instanceID matches our instance ids. Anything else that is asked for is unknown, and never becomes a path.
var instanceID = regexp.MustCompile(`^i-[0-9a-f]{17}$`)

// host is the directory of one host.
type host struct {
	id  string
	dir string
}

func (c *Compute) host(id string) host { return host{id: id, dir: filepath.Join(c.hostsDir(), id)} }

func (c *Compute) hostsDir() string  { return filepath.Join(c.opts.Root, "hosts") }
func (c *Compute) ordersDir() string { return filepath.Join(c.opts.Root, "orders") }

func (h host) path(name string) string { return filepath.Join(h.dir, name) }

func (h host) has(name string) bool {
	_, err := os.Lstat(h.path(name))
	return err == nil
}

// exists reports whether the host was ever launched and is not pruned yet.
func (h host) exists() bool {
	if !instanceID.MatchString(h.id) {
		return false
	}
	info, err := os.Lstat(h.dir)
	return err == nil && info.IsDir()
}

// started reports whether init was started, or never will be.
func (h host) started() bool {
	return h.has("init.pid") || h.has("ending") || h.has("ended") || h.halted()
}

// halted reports whether the host is stopped, or to be.
func (h host) halted() bool { return h.has("stopping") || h.has("stopped") }

// ids are the instance ids of all host directories, sorted.
func (c *Compute) ids() ([]string, error) {
	entries, err := os.ReadDir(c.hostsDir())
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && instanceID.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// machine returns the host as it was launched, in its present state. If its tags cannot be
// read, only its id is known, so that it can still be ended.
func (c *Compute) machine(h host) lifecycle.Machine {
	bare := lifecycle.Machine{InstanceID: h.id, State: c.state(h)}
	if !h.exists() {
		return bare
	}
	var stored machineJSON
	data, err := safefile.Read(h.path("machine.json"))
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil || stored.InstanceID != h.id {
		c.log.Warn("tags of a host are unreadable", logkey.Instance, h.id, logkey.Error, err)
		return bare
	}
	m := lifecycle.Machine(stored)
	m.State, m.Bypass = bare.State, h.bypassed()
	return m
}

// bypassed reports whether an operator excludes the host from scale-down, by a file
// bypass-removal in its directory that contains true, like the tag in EC2.
func (h host) bypassed() bool {
	word, err := safefile.Read(h.path("bypass-removal"))
	return err == nil && strings.TrimSpace(string(word)) == "true"
}

// state returns the state by the directory and the processes. A host with something that
// is still to be ended is ending: see look.
func (c *Compute) state(h host) lifecycle.MachineState {
	switch {
	case !h.exists() || h.has("ended"):
		return lifecycle.MachineGone
	case h.has("ending"):
		return lifecycle.MachineEnding
	case h.has("stopping"):
		return lifecycle.MachineStopping
	case h.has("stopped"):
		return lifecycle.MachineStopped
	case !h.has("init.pid"):
		return lifecycle.MachinePending
	case !c.initAlive(h):
		return lifecycle.MachineEnding
	case !h.has("booted"):
		return lifecycle.MachinePending
	}
	return lifecycle.MachineRunning
}

// Launched finds the machines that a launch made, gone ones too, by id. Those whose launch was cut short
// before they were started are started: who finds them all does not make the order again.
func (c *Compute) Launched(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	ids, err := c.ids()
	if err != nil {
		return nil, unavailable("find launched machines", err)
	}
	found := slices.DeleteFunc(c.look(ctx, ids), func(m lifecycle.Machine) bool { return !m.From(order) })
	if err := c.bootAll(ctx, found); err != nil {
		return nil, unavailable("find launched machines", err)
	}
	return found, nil
}

// Describe returns each machine asked for, in that order.
func (c *Compute) Describe(ctx context.Context, instanceIDs []string) ([]lifecycle.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("describe machines: %w", err)
	}
	return c.look(ctx, instanceIDs), nil
}

// List pages through the machines that are not gone, by id.
func (c *Compute) List(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	ids, err := c.ids()
	if err != nil {
		return lifecycle.Page[lifecycle.Machine]{}, unavailable("list machines", err)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id <= page.After })
	rest := slices.DeleteFunc(c.look(ctx, ids), isGone)
	if len(rest) <= page.Size() {
		return lifecycle.Page[lifecycle.Machine]{Items: rest}, nil
	}
	items := rest[:page.Size()]
	return lifecycle.Page[lifecycle.Machine]{Items: items, Next: items[len(items)-1].InstanceID}, nil
}

func isGone(m lifecycle.Machine) bool { return m.State == lifecycle.MachineGone }

// look returns each machine in its present state, after it has ended completely those that are to end or have
// powered off. A machine that could not be ended completely is ending, and the next look tries again.
func (c *Compute) look(ctx context.Context, ids []string) []lifecycle.Machine {
	var machines []lifecycle.Machine
	var ending []string
	for _, id := range ids {
		m := c.machine(c.host(id))
		if m.State == lifecycle.MachineEnding {
			ending = append(ending, id)
		}
		machines = append(machines, m)
	}
	if c.opts.ReadOnly {
		return machines
	}
	for i, m := range machines {
		if m.State == lifecycle.MachineStopping {
			if err := c.Stop(ctx, m.InstanceID, false); err != nil {
				c.log.Warn("a host could not be stopped", logkey.Instance, m.InstanceID, logkey.Error, err)
			}
			machines[i].State = c.state(c.host(m.InstanceID))
		}
	}
	if len(ending) == 0 {
		return machines
	}
	if err := c.end(ctx, ending); err != nil {
		c.log.Warn("hosts could not be ended", logkey.Error, err)
	}
	for i, m := range machines {
		if m.State == lifecycle.MachineEnding {
			machines[i].State = c.state(c.host(m.InstanceID))
		}
	}
	return machines
}
