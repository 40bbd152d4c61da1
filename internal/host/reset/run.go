package reset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/host/script"
	"github.com/remuda-ci/remuda/internal/host/tree"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Run ends everything that runs have left running, removes what they have left on disk and in the kernel, renews what they
// write to, and runs the operator's hook. After an error the host must not be used again, and the steps after the one that
// failed have not been done. Each step is bounded in time, and ctx bounds them all.
func Run(ctx context.Context, p Plan, log hclog.Logger) error {
	if err := p.Validate(); err != nil {
		return err
	}
	base, err := p.readBaseline()
	if err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	conn, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	defer conn.Close()
	manager := systemd{conn}
	// What can start something goes before what it could start, and what runs goes before the files that it writes.
	steps := []struct {
		name string
		do   func() error
	}{
		{"units", func() error { return p.endUnits(ctx, conn) }},
		{"processes", func() error { return p.killProcesses(ctx) }},
		{"containers", func() error { return p.removeDockerObjects(ctx, manager) }},
		{"jobs", p.removeScheduledJobs},
		{"processes again", func() error { return p.killProcesses(ctx) }}, // that cron or a container has started in the meantime
		{"mounts", func() error { return p.unmount(ctx, manager, base) }},
		{"ipc", p.removeIPC},
		{"keys", func() error { return p.removeKeys(ctx, log) }},
		{"files elsewhere", p.removeLeftovers},
		{"directories", p.renew},
		{"temporary directories", func() error { return p.emptyTemporary(ctx, conn, base.Sockets) }},
		{"post-release hook", func() error { return p.hook(ctx, log) }},
	}
	for _, step := range steps {
		start := time.Now()
		err := step.do()
		log.Debug("reset step finished", logkey.Step, step.name, logkey.Took, time.Since(start), logkey.Error, err)
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

// renew replaces what runs write to.
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
	// The home belongs to us until it is complete.
	if err := tree.Renew(p.Home.Path, tree.Owner{UID: os.Geteuid(), GID: os.Getegid()}, 0o700); err != nil {
		return err
	}
	err := tree.Copy(p.Skeleton, p.Home.Path, p.Home.Owner)
	return errors.Join(err, os.Chmod(p.Home.Path, p.Home.Mode))
}
