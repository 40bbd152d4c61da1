package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/units"
)

// systemdConfig is how the tasks of a host run as units.
type systemdConfig struct {
	// User is whom jobs run as; by default defaultUser.
	User   string      `yaml:"user"`
	Limits limitConfig `yaml:"limits"`
}

// limitConfig bounds what a run may use of its host; 0: as systemd has it.
type limitConfig struct {
	// Tasks are processes and threads.
	Tasks uint64 `yaml:"tasks"`
	// OpenFiles is for each process.
	OpenFiles uint64 `yaml:"open_files"`
	// MemoryMiB is of all its processes together.
	MemoryMiB uint64 `yaml:"memory_mib"`
}

const (
	defaultUser = "runner"
	// defaultTasks is more than builds use, and few enough that a fork bomb
	// leaves the host able to end it.
	defaultTasks = 32768
	// defaultOpenFiles is what GitHub's own runners have.
	defaultOpenFiles = 65536
)

// SetDefaults is called before the section is read.
func (s *systemdConfig) SetDefaults() {
	s.User = defaultUser
	s.Limits = limitConfig{Tasks: defaultTasks, OpenFiles: defaultOpenFiles}
}

// leastTasks: below it the runner itself does not start.
const leastTasks = 128

func (c *config) validateSystemd(root strictyaml.Place) {
	at := root.At("systemd")
	switch s := c.Systemd; {
	case s == nil && c.PostRelease.Script != "":
		root.At("post_release", "script").Errorf("is for hosts with systemd; write a systemd section, or leave it out")
	case s == nil:
	case s.User == "" || s.User == "root":
		at.At("user").Errorf("is %q; write a user of its own for jobs", s.User)
	case s.Limits.Tasks > 0 && s.Limits.Tasks < leastTasks:
		at.At("limits", "tasks").Errorf("is %d; write %d or more, or 0 for no limit", s.Limits.Tasks, leastTasks)
	}
	if c.PostRelease.Script != "" {
		path(root.At("post_release", "script"), c.PostRelease.Script)
	}
}

// secretsDir is the RuntimeDirectory= of agentd.service: in memory, and root's.
const secretsDir = "/run/remuda"

// dockerGroup is whose members may use docker, which makes them root.
const dockerGroup = "docker"

// systemd is nil for a host without units.
func (c config) systemd(log hclog.Logger) (*host.Systemd, error) {
	if c.Systemd == nil {
		return nil, nil
	}
	who, err := user.Lookup(c.Systemd.User)
	if err != nil {
		return nil, fmt.Errorf("systemd.user: %w; the package remuda-agentd makes the user %s", err, defaultUser)
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return nil, fmt.Errorf("systemd.user: %w", err)
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return nil, fmt.Errorf("systemd.user: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find agentd itself: %w", err)
	}
	s := &host.Systemd{
		User: c.Systemd.User, UID: uid, GID: gid, Home: who.HomeDir, Program: program, Config: c.Path, Secrets: secretsDir,
		Privileged: c.Host.Privileged, JobsReadMetadata: c.Host.JobsReadMetadata,
		Limits: units.Limits{
			Tasks: c.Systemd.Limits.Tasks, OpenFiles: c.Systemd.Limits.OpenFiles, MemoryMax: c.Systemd.Limits.MemoryMiB << 20,
		},
	}
	if _, err := user.LookupGroup(dockerGroup); err == nil && s.Privileged {
		s.Groups = []string{dockerGroup}
	}
	s.Slate = c.slate(s, log)
	return s, nil
}
