package slate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/host/script"
	"github.com/remuda-ci/remuda/internal/host/tree"
)

// Clean ends everything that runs have left running, takes away what they have left lying about, renews what they write to
// and runs the operator's hook. An error means that the host must not be used again; what comes after the step that failed
// has not been done. Everything is bounded in time, by ctx too.
func Clean(ctx context.Context, p Plan, log hclog.Logger) error {
	if err := p.Validate(); err != nil {
		return err
	}
	base, err := p.baseline()
	if err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	conn, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	defer conn.Close()
	manager := systemd{conn}
	// Whatever can start something goes before what it could start, and all that runs before the files that it writes.
	steps := []struct {
		name string
		do   func() error
	}{
		{"units", func() error { return p.endUnits(ctx, conn) }},
		{"processes", func() error { return p.killProcesses(ctx) }},
		{"containers", func() error { return p.removeContained(ctx, manager) }},
		{"jobs", p.removeJobs},
		{"processes again", func() error { return p.killProcesses(ctx) }}, // which cron or a container has started meanwhile
		{"mounts", func() error { return p.unmount(ctx, manager, base) }},
		{"ipc", p.removeShared},
		{"keys", func() error { return p.removeKeys(ctx, log) }},
		{"files elsewhere", p.removeStrays},
		{"directories", p.renew},
		{"temporary directories", func() error { return p.empty(ctx, conn, base.Sockets) }},
		{"post-release hook", func() error { return p.hook(ctx, log) }},
	}
	for _, step := range steps {
		start := time.Now()
		err := step.do()
		log.Debug("clean slate", "step", step.name, "took", time.Since(start), "error", err)
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("clean host: %s: %w", step.name, err)
		}
	}
	return nil
}

// hook runs the operator's script, if there is one.
func (p Plan) hook(ctx context.Context, log hclog.Logger) error {
	if p.Hook == "" {
		return nil
	}
	return script.Run(ctx, p.Hook, p.HookLimit, log.Named("post-release"))
}

// renew renews what runs write to.
func (p Plan) renew() error {
	for _, dir := range p.Renew {
		if err := tree.Renew(dir.Path, dir.Owner, dir.Mode); err != nil {
			return err
		}
	}
	for _, m := range p.Mirrors {
		if err := tree.Mirror(m.From, m.To, m.Owner); err != nil {
			return err
		}
	}
	// Ours until it is whole.
	if err := tree.Renew(p.Home.Path, tree.Owner{UID: os.Geteuid(), GID: os.Getegid()}, 0o700); err != nil {
		return err
	}
	err := tree.Copy(p.Skeleton, p.Home.Path, p.Home.Owner)
	return errors.Join(err, os.Chmod(p.Home.Path, p.Home.Mode))
}
