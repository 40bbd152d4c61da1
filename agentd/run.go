package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// errStopped is no power-off: the host goes on, with or without its agent.
var errStopped = errors.New("stopped by a signal; the runner is left as it is")

func run(ctx context.Context, c config) error {
	log := telemetry.NewLogger("agentd", c.LogLevel, c.LogFormat, os.Stderr).With("instance", c.InstanceID)
	h, err := host.New(host.Options{
		InstanceID: c.InstanceID, Dir: c.Directory, Distribution: c.Runner.Distribution,
		PreRunner: c.PreRunner.Script, PreRunnerLimit: c.PreRunner.Timeout, Env: c.Runner.Env,
		MinimumFree: uint64(c.Runner.MinimumFreeMiB) << 20, Logger: log.Named("host"),
	})
	if err != nil {
		return &configError{err}
	}
	release, err := lockState(log, filepath.Join(c.Directory, "state", "agent.lock"))
	if err != nil {
		return err
	}
	defer release()
	store := &sqliteStore{path: c.Store.SQLite.Path, hostKey: c.HostKey}
	defer store.Close()
	a, err := agent.New(agent.Options{
		HostKey: c.HostKey, Store: store, Host: h, Version: telemetry.Version,
		State:       host.StateFile{Path: filepath.Join(c.Directory, "state", "agent.json"), Now: time.Now},
		Intervals:   agent.Intervals(c.Intervals),
		BootTimeout: c.BootTimeout, Logger: log.Named("agent"),
	})
	if err != nil {
		return err
	}
	log.Info("started", "version", telemetry.Version, "directory", c.Directory)
	switch err := a.Run(ctx, agent.Waker{Changed: h.Changed()}); {
	case err == nil:
		log.Info("powered off")
		return nil
	case errors.Is(err, context.Canceled):
		return errStopped
	default:
		return fmt.Errorf("run agent: %w", err)
	}
}

// lockState keeps a second agentd off the host. On a disk that takes nothing
// there is no lock to be had, and a job may be running that must be looked
// after all the same.
func lockState(log hclog.Logger, path string) (release func(), err error) {
	lock, err := host.Lock(path)
	if errors.Is(err, host.ErrInUse) {
		return nil, err
	}
	if err != nil {
		log.Error("cannot lock the host, going on without", "error", err)
		return func() {}, nil
	}
	return func() { lock.Close() }, nil
}
