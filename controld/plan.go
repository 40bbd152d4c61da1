package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/dev"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/inputs"
	scaledown "github.com/remuda-ci/remuda/internal/plan"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// plan prints what a scale-down would do with the fleet of a snapshot. It makes no call.
func plan(_ context.Context, call *call) error {
	var path, output string
	if _, err := call.parse(0, func(f *flag.FlagSet) {
		f.StringVar(&path, "snapshot", "", "the `FILE` that describes the fleet, as `controld snapshot` writes it; - for standard input")
		f.StringVar(&output, "output", "table", "`table` for people, json for programs")
	}); err != nil {
		return err
	}
	write, known := planOutputs[output]
	switch {
	case path == "":
		return call.misused("--snapshot is required")
	case !known:
		return call.misused("--output %.40q is neither table nor json", output)
	}
	verdicts, err := scaledown.Read(path, os.Stdin)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(call.stdout)
	if err := write(out, verdicts); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

var planOutputs = map[string]func(io.Writer, []policy.HostVerdict) error{"json": scaledown.JSON, "table": scaledown.Table}

// snapshot writes the present fleet of a configuration, or of a dev, in the format that plan
// reads. It changes nothing.
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
	for _, d := range left {
		fmt.Fprintf(call.stderr, "left out: %s: %s, %s\n", d.InstanceID, d.Action, d.Reason)
	}
	data, err := json.MarshalIndent(taken, "", "  ")
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	data = append(data, '\n')
	if output == "-" {
		_, err = call.stdout.Write(data)
	} else {
		err = os.WriteFile(output, data, 0o600)
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
func takeSnapshot(ctx context.Context, c *config.Config, call *call) (_ policy.Snapshot, _ []fleet.Decided, err error) {
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
	idle := &fleet.ScaleDown{GitHub: hub, Scope: scope(c)}
	if c.ScaleDown != nil {
		if idle.Policy, err = c.ScaleDown.Policy(); err != nil {
			return policy.Snapshot{}, nil, &configError{fmt.Errorf("scale_down: %w", err)}
		}
	}
	offered, err := pools(c)
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	f, err := fleet.New(fleet.Options{
		Store: p.store, Queue: p.queue, Compute: p.compute, GitHub: hub, Guards: p.store, Jobs: jobOptions(c, p.store, hub),
		Pools: offered, Classes: classes(c), HostKey: p.hostKey, ScaleDown: idle, Replica: "snapshot", Log: log.Named("fleet"),
	})
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	return f.Snapshot(ctx, time.Now())
}
