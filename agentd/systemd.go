package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/dockerstore"
	"github.com/remuda-ci/remuda/internal/host/reset"
	"github.com/remuda-ci/remuda/internal/host/units"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/tree"
)

// systemdConfig configures how the tasks of a host run as units.
type systemdConfig struct {
	// User is the user that jobs run as; by default defaultUser.
	User   string      `yaml:"user"`
	Limits limitConfig `yaml:"limits"`
}

// limitConfig bounds what a run may use of its host; 0 for the default of systemd.
type limitConfig struct {
	// Tasks bounds processes and threads.
	Tasks int64 `yaml:"tasks"`
	// OpenFiles applies to each process.
	OpenFiles int64 `yaml:"open_files"`
	// MemoryMiB applies to all processes together.
	MemoryMiB int64 `yaml:"memory_mib"`
}

const (
	defaultUser = "runner"
	// defaultTasks is more than builds use, and few enough that the host can still end a fork bomb.
	defaultTasks = 32768
	// defaultOpenFiles is what GitHub's own runners have.
	defaultOpenFiles = 65536
)

// SetDefaults is called before the section is read.
func (s *systemdConfig) SetDefaults() {
	s.User = defaultUser
	s.Limits = limitConfig{Tasks: defaultTasks, OpenFiles: defaultOpenFiles}
}

// Bounds of the limits. Below the lower ones the runner itself does not start.
const (
	leastTasks     = 128
	leastOpenFiles = 1024
	leastMemoryMiB = 256
	mostOfAll      = 1 << 30
)

func (c *config) validateSystemd(root strictyaml.Place) {
	root.At("post_release", "script").OptionalPath(c.PostRelease.Script)
	if c.Systemd == nil {
		if c.PostRelease.Script != "" {
			root.At("post_release", "script").Errorf("is for hosts with systemd; write a systemd section, or leave it out")
		}
		return
	}
	at := root.At("systemd")
	if user := c.Systemd.User; user == "" || user == "root" {
		at.At("user").Errorf("is %q; write a user of its own for jobs", user)
	}
	l := c.Systemd.Limits
	limit(at.At("limits", "tasks"), l.Tasks, leastTasks)
	limit(at.At("limits", "open_files"), l.OpenFiles, leastOpenFiles)
	limit(at.At("limits", "memory_mib"), l.MemoryMiB, leastMemoryMiB)
}

// limit checks a limit. 0 means no limit.
func limit(p strictyaml.Place, value, least int64) {
	if value != 0 && (value < least || value > mostOfAll) {
		p.Errorf("is %d; write a number from %d to %d, or 0 for no limit", value, least, mostOfAll)
	}
}

// secretsDir is the RuntimeDirectory= of agentd.service: in memory, and readable by root only.
const secretsDir = "/run/remuda"

// dockerGroup is the group that may use docker, which gives its members root's rights.
const dockerGroup = "docker"

// dockerSocket is where docker's daemon listens, or systemd for it.
const dockerSocket = "/run/docker.sock"

// account is a user of the machine.
type account struct {
	uid, gid int
	home     string
}

func findAccount(name string) (account, error) {
	who, err := user.Lookup(name)
	if err != nil {
		return account{}, fmt.Errorf("systemd.user: %w; the package remuda-agentd makes the user %s", err, defaultUser)
	}
	uid, err := strconv.Atoi(who.Uid)
	gid, gidErr := strconv.Atoi(who.Gid)
	if err := errors.Join(err, gidErr); err != nil {
		return account{}, fmt.Errorf("systemd.user: %w", err)
	}
	return account{uid: uid, gid: gid, home: who.HomeDir}, nil
}

// systemd returns nil for a host without units. assignment is that of a clean-up.
func (c config) systemd(s system, assignment int64, log hclog.Logger) *host.Systemd {
	if c.Systemd == nil {
		return nil
	}
	o := &host.Systemd{
		User: c.Systemd.User, UID: s.user.uid, GID: s.user.gid, Home: s.user.home, Secrets: secretsDir,
		Privileged: c.Host.Privileged, JobsReadMetadata: c.Host.JobsReadMetadata,
		Limits: units.Limits{
			Tasks: uint64(c.Systemd.Limits.Tasks), OpenFiles: uint64(c.Systemd.Limits.OpenFiles), MemoryMax: uint64(c.Systemd.Limits.MemoryMiB) << 20,
		},
		Reset: hostReset{plan: c.reset(s, assignment), log: log},
	}
	if c.Host.Privileged && s.docker.group {
		o.Groups = []string{dockerGroup}
	}
	return o
}

// hostReset resets this host between runs.
type hostReset struct {
	plan reset.Plan
	log  hclog.Logger
}

var _ host.Reset = hostReset{}

func (s hostReset) Record(ctx context.Context) error { return reset.Record(ctx, s.plan) }

func (s hostReset) Run(ctx context.Context, r *statement.Reset, keepImages bool) error {
	return reset.Run(ctx, s.stated(r, keepImages), s.log)
}

func (s hostReset) Verify(ctx context.Context, r *statement.Reset, keepImages bool) error {
	return reset.Verify(ctx, s.stated(r, keepImages))
}

func (s hostReset) KeepImages(ctx context.Context, c dockerstore.Cache) (dockerstore.Outcome, error) {
	return reset.KeepImages(ctx, s.plan, c)
}

func (s hostReset) RemoveImages(ctx context.Context) error { return reset.RemoveImages(ctx, s.plan) }

// stated is the plan with the statement that it fills in.
func (s hostReset) stated(r *statement.Reset, keepImages bool) reset.Plan {
	plan := s.plan
	plan.Statement, plan.KeepImages = r, keepImages
	return plan
}

// Modes of the directories that all users share, and of the home of the runner's user.
const (
	modeShared = fs.ModeSticky | 0o777
	modeHome   = 0o750
)

// sharedDirs are emptied between runs.
var sharedDirs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// leastInodes is what a checkout needs, with room for a build.
const leastInodes = 50_000

// reset is the reset after an assignment; 0 for the preparation of the host, which follows none.
func (c config) reset(s system, assignment int64) reset.Plan {
	runner := tree.Owner{UID: s.user.uid, GID: s.user.gid}
	plan := reset.Plan{
		User: c.Systemd.User, UID: s.user.uid, GID: s.user.gid,
		Home: reset.Dir{Path: s.user.home, Owner: runner, Mode: modeHome}, Skeleton: "/etc/skel",
		Renew:   []reset.Dir{{Path: filepath.Join(c.Directory, "work"), Owner: runner, Mode: host.ModeWork}},
		Mirrors: []reset.Mirror{{From: c.Runner.Distribution, To: filepath.Join(c.Directory, "runner"), Owner: tree.Owner{UID: s.user.uid}}},
		Units:   host.RunUnits, OwnUnits: host.OwnUnits(assignment),
		Hook: c.PostRelease.Script, HookLimit: c.PostRelease.Timeout,
		MinimumFree: c.minimumFree(), MinimumFreeInodes: leastInodes,
		Baseline:  c.state("baseline.json"),
		Unchanged: []string{s.program, c.Path, c.Runner.Distribution},
	}
	for _, dir := range sharedDirs {
		plan.Empty = append(plan.Empty, reset.Dir{Path: dir, Mode: modeShared})
	}
	if c.Host.Privileged { // others may not use docker
		plan.Docker = s.docker.path
		plan.Images = &dockerstore.Store{Socket: dockerSocket, Dir: filepath.Dir(plan.Baseline)}
	}
	return plan
}
