package main

import (
	"context"
	"io/fs"
	"os/exec"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/reset"
	"github.com/remuda-ci/remuda/internal/host/tree"
)

// hostReset resets this host between runs.
type hostReset struct {
	plan reset.Plan
	log  hclog.Logger
}

var _ host.Reset = hostReset{}

func (s hostReset) Record(ctx context.Context) error { return reset.Record(ctx, s.plan) }
func (s hostReset) Run(ctx context.Context) error    { return reset.Run(ctx, s.plan, s.log) }
func (s hostReset) Verify(ctx context.Context) error { return reset.Verify(ctx, s.plan) }

// Modes of the directories that all users share, and of the home of the runner's user.
const (
	modeShared = fs.ModeSticky | 0o777
	modeHome   = 0o750
)

// sharedDirs are emptied between runs.
var sharedDirs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// leastInodes is what a checkout needs, with room for a build.
const leastInodes = 50_000

// reset returns the reset after an assignment; 0 for the preparation of the host, which follows none.
func (c config) reset(s *host.Systemd, assignment int64, log hclog.Logger) hostReset {
	runner := tree.Owner{UID: s.UID, GID: s.GID}
	plan := reset.Plan{
		User: s.User, UID: s.UID, GID: s.GID,
		Home: reset.Dir{Path: s.Home, Owner: runner, Mode: modeHome}, Skeleton: "/etc/skel",
		Renew:   []reset.Dir{{Path: filepath.Join(c.Directory, "work"), Owner: runner, Mode: host.ModeWork}},
		Mirrors: []reset.Mirror{{From: c.Runner.Distribution, To: filepath.Join(c.Directory, "runner"), Owner: tree.Owner{UID: s.UID}}},
		Units:   host.RunUnits, OwnUnits: host.OwnUnits(assignment),
		Hook: c.PostRelease.Script, HookLimit: c.PostRelease.Timeout,
		MinimumFree: uint64(c.Runner.MinimumFreeMiB) << 20, MinimumFreeInodes: leastInodes,
		Baseline:  filepath.Join(c.Directory, "state", "baseline.json"),
		Unchanged: []string{s.Program, c.Path, c.Runner.Distribution},
	}
	for _, dir := range sharedDirs {
		plan.Empty = append(plan.Empty, reset.Dir{Path: dir, Mode: modeShared})
	}
	if s.Privileged { // others may not use docker
		if path, err := exec.LookPath("docker"); err == nil {
			plan.Docker = path
		}
	}
	return hostReset{plan: plan, log: log}
}
