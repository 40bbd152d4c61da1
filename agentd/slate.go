package main

import (
	"context"
	"io/fs"
	"os/exec"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/slate"
	"github.com/remuda-ci/remuda/internal/host/tree"
)

// hostSlate is what the runs of this host can write to.
type hostSlate struct {
	plan slate.Plan
	log  hclog.Logger
}

var _ host.Slate = hostSlate{}

func (s hostSlate) Record(ctx context.Context) error { return slate.Record(ctx, s.plan) }
func (s hostSlate) Clean(ctx context.Context) error  { return slate.Clean(ctx, s.plan, s.log) }
func (s hostSlate) Check(ctx context.Context) error  { return slate.Check(ctx, s.plan) }

// Where everybody may write, and the modes of that and of the user's own.
const (
	modeShared = fs.ModeSticky | 0o777
	modeHome   = 0o750
)

// sharedDirs are emptied between runs.
var sharedDirs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// leastInodes is what a checkout needs, with room for a build.
const leastInodes = 50_000

// slate is that of a clean-up after an assignment, or of the preparation, for which
// there is none.
func (c config) slate(s *host.Systemd, assignment int64, log hclog.Logger) hostSlate {
	runner := tree.Owner{UID: s.UID, GID: s.GID}
	plan := slate.Plan{
		User: s.User, UID: s.UID, GID: s.GID,
		Home: slate.Dir{Path: s.Home, Owner: runner, Mode: modeHome}, Skeleton: "/etc/skel",
		Renew:   []slate.Dir{{Path: filepath.Join(c.Directory, "work"), Owner: runner, Mode: host.ModeWork}},
		Mirrors: []slate.Mirror{{From: c.Runner.Distribution, To: filepath.Join(c.Directory, "runner"), Owner: tree.Owner{UID: s.UID}}},
		Units:   host.RunUnits, OwnUnits: host.OwnUnits(assignment),
		Hook: c.PostRelease.Script, HookLimit: c.PostRelease.Timeout,
		MinimumFree: uint64(c.Runner.MinimumFreeMiB) << 20, MinimumFreeInodes: leastInodes,
		Baseline:  filepath.Join(c.Directory, "state", "baseline.json"),
		Unchanged: []string{s.Program, c.Path, c.Runner.Distribution},
	}
	for _, dir := range sharedDirs {
		plan.Empty = append(plan.Empty, slate.Dir{Path: dir, Mode: modeShared})
	}
	if s.Privileged { // nobody else may use it
		if path, err := exec.LookPath("docker"); err == nil {
			plan.Docker = path
		}
	}
	return hostSlate{plan: plan, log: log}
}
