package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/dev"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/settings"
	offline "github.com/remuda-ci/remuda/internal/snapshot"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// snapshot writes the present fleet of a configuration, or of a dev, in the format that plan
// and the flag --snapshot of remuda read. It changes nothing.
func snapshot(ctx context.Context, call *call) error {
	var path, stateDir, output string
	if _, err := call.parse(0, func(f *flag.FlagSet) {
		f.StringVar(&path, "config", "", "the configuration `FILE` of the fleet, that of controld serve, or with --state-dir that of controld dev")
		f.StringVar(&stateDir, "state-dir", "", "the state `DIR` of a controld dev that runs, instead of a configuration")
		f.StringVar(&output, "output", "-", "the `FILE` that is written; - for standard output")
	}); err != nil {
		return err
	}
	switch {
	case path == "" && stateDir == "":
		return call.misused("--config or --state-dir is required")
	case output == "":
		return call.misused("--output is empty")
	}
	c, err := fleetOf(path, stateDir)
	if err != nil {
		return err
	}
	switch {
	case path == "":
		fmt.Fprintln(call.stderr, "no --config was given: the snapshot has the defaults of scale_down, whatever the fleet that runs has; "+
			"give the --config of its controld dev, if it has one")
	case c.ScaleDown == nil:
		fmt.Fprintln(call.stderr, "the configuration has no scale_down: the snapshot has its defaults, and nothing of the fleet is scaled down")
	}
	taken, left, err := takeSnapshot(ctx, c, call)
	if err != nil {
		return err
	}
	for _, what := range left {
		fmt.Fprintf(call.stderr, "left out: %s\n", what)
	}
	var data bytes.Buffer
	if err := offline.Write(&data, taken); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if output == "-" {
		_, err = call.stdout.Write(data.Bytes())
	} else {
		err = os.WriteFile(output, data.Bytes(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// fleetOf is the configuration of a daemon: that of a file for serve, or the one that dev
// makes of a state directory and a file, if there is one.
func fleetOf(path, stateDir string) (*config.Config, error) {
	if stateDir == "" {
		c, err := config.Load(path)
		if err != nil {
			return nil, wrongConfig(err)
		}
		return c, nil
	}
	o, err := dev.OptionsFor(path, stateDir)
	if err != nil {
		return nil, fmt.Errorf("--state-dir %s: %w", stateDir, err)
	}
	standin := dev.NewStandin(o.GitHubDir())
	if !standin.Find() {
		return nil, fmt.Errorf("--state-dir %s: no GitHub stand-in runs on it; start `controld dev` with it, or name another directory", stateDir)
	}
	programs, err := dev.FindPrograms()
	if err != nil {
		return nil, err
	}
	c, err := devConfiguration(&o, programs)
	if err != nil {
		return nil, err
	}
	c.GitHub.URL = standin.URL()
	return c, nil
}

// takeSnapshot reads the fleet through the adapters of its configuration. It runs no sweep, so
// it needs no unique replica name.
func takeSnapshot(ctx context.Context, c *config.Config, call *call) (_ policy.Snapshot, left []string, err error) {
	log := telemetry.NewLogger("controld", string(c.Log.Level), string(c.Log.Format), call.stderr)
	in, err := inputs.ForReading("the configuration", c)
	if err != nil {
		return policy.Snapshot{}, nil, &configError{err}
	}
	hub, err := newHub(c, in, nil, log)
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	p, err := newBackends(ctx, c, in, log, true)
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	idle := &fleet.ScaleDown{GitHub: hub, Scope: settings.Scope(c), Every: c.Sweeps.ScaleDown, PlanOnly: c.ScaleDown == nil}
	if c.ScaleDown != nil {
		if idle.Policy, err = c.ScaleDown.Policy(); err != nil {
			return policy.Snapshot{}, nil, &configError{fmt.Errorf("scale_down: %w", err)}
		}
	}
	offered, err := settings.Pools(c)
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	prices := c.Cost.List(p.region)
	return offline.Take(ctx, offline.Source{
		Options: fleet.Options{
			Store: p.store, Queue: p.queue, Compute: p.compute, GitHub: hub, Guards: p.store, Jobs: jobOptions(c, p.store, hub),
			Pools: offered, Classes: settings.Classes(c), HostKey: p.hostKey, ScaleDown: idle, Prices: &prices, Budgets: c.Limits.BudgetList(), CallsMade: callsMade(p.calls),
			Timing: settings.Timing(c.Sweeps), Replica: "snapshot", Log: log.Named("fleet"),
		},
		Services: slices.Sorted(maps.Keys(c.Services)),
	}, time.Now())
}
