package process

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

func (c *Compute) host(id string) host {
	return host{id: id, dir: filepath.Join(c.hostsDir(), id)}
}

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
func (h host) started() bool { return h.has("init.pid") || h.has("ending") || h.has("ended") }

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
	case !h.has("init.pid"):
		return lifecycle.MachinePending
	case !c.initAlive(h):
		return lifecycle.MachineEnding
	case !h.has("booted"):
		return lifecycle.MachinePending
	}
	return lifecycle.MachineRunning
}
