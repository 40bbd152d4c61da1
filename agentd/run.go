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
	"github.com/remuda-ci/remuda/internal/host/notify"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// errStopped is no power-off: the host goes on, with or without its agent.
var errStopped = errors.New("stopped by a signal; the runner is left as it is")

func run(ctx context.Context, c config) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	// Whoever waits for agentd need not wait for the machine to say which it is.
	tell := teller(c.logger(""))
	tell(notify.Ready())
	tell(notify.Status("finding out which machine this is"))
	h, err := c.host(0)
	if err != nil {
		return &configError{err}
	}
	release, err := lockState(c.logger(c.InstanceID), filepath.Join(c.Directory, "state", "agent.lock"))
	if err != nil {
		return err
	}
	defer release()
	h.RemoveSecrets()
	h.PrepareAhead(ctx)
	p, err := findPlace(ctx, c, fail)
	if err != nil {
		return stopped(ctx, err)
	}
	defer p.store.Close()
	log := c.logger(p.instanceID)
	h.SetIdentity(p.instanceID, p.power, log.Named("host"))
	a, err := agent.New(agent.Options{
		HostKey: p.hostKey, Store: p.store, Host: h, Version: telemetry.Version,
		State:       host.StateFile{Path: filepath.Join(c.Directory, "state", "agent.json"), Now: time.Now},
		Intervals:   agent.Intervals(c.Intervals),
		BootTimeout: c.BootTimeout, Logger: log.Named("agent"),
	})
	if err != nil {
		return err
	}
	log.Info("started", "version", telemetry.Version, "directory", c.Directory)
	for _, watch := range p.watches {
		go watch(ctx, h)
	}
	if err := runAgent(ctx, a, h, log); err != nil {
		return err
	}
	if c.Systemd == nil || p.power == nil {
		return nil // whoever started agentd takes its end for the machine's
	}
	return p.power.Await(ctx)
}

// teller returns what says when systemd could not be told something, once.
func teller(log hclog.Logger) func(error) {
	said := false
	return func(err error) {
		if err != nil && !said {
			log.Warn("systemd does not hear", "error", err)
		}
		said = err != nil
	}
}

// runAgent runs the agent until the machine is powered off, or it is told to
// stop. systemd hears how it goes.
func runAgent(ctx context.Context, a *agent.Agent, h *host.Host, log hclog.Logger) error {
	tell := teller(log)
	err := a.Run(ctx, agent.Waker{
		Changed: h.Changed(), Stepped: notify.Stepped(log),
		Status: func(line string) { tell(notify.Status(line)) },
	})
	if err != nil {
		tell(notify.Stopping())
		return stopped(ctx, fmt.Errorf("run agent: %w", err))
	}
	log.Info("powered off")
	return nil
}

// host is what the configuration makes of this machine, whose id may still be
// unknown. The assignment is that of a clean-up.
func (c config) host(assignment int64) (*host.Host, error) {
	log := c.logger(c.InstanceID)
	systemd, err := c.systemd(assignment, log.Named("reset"))
	if err != nil {
		return nil, err
	}
	return host.New(host.Options{
		InstanceID: c.InstanceID, Dir: c.Directory, Distribution: c.Runner.Distribution,
		PreRunner: c.PreRunner.Script, PreRunnerLimit: c.PreRunner.Timeout, Env: c.Runner.Env,
		MinimumFree: uint64(c.Runner.MinimumFreeMiB) << 20, Systemd: systemd, Logger: log.Named("host"),
	})
}

// stopped says why agentd ends without having powered off its host.
func stopped(ctx context.Context, err error) error {
	var wrong *configError
	switch {
	case errors.As(context.Cause(ctx), &wrong):
		return wrong
	case ctx.Err() != nil:
		return errStopped
	}
	return err
}

// logger is that of a host; the id may not be known yet.
func (c config) logger(instanceID string) hclog.Logger {
	log := telemetry.NewLogger("agentd", c.LogLevel, c.LogFormat, os.Stderr)
	if instanceID == "" {
		return log
	}
	return log.With("instance", instanceID)
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
