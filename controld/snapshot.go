package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// snapshot writes the fleet of a configuration as it is now, in the format that
// plan reads. It changes nothing.
func snapshot(ctx context.Context, call *call) error {
	var path, output string
	if _, err := call.parse(0, func(f *flag.FlagSet) {
		f.StringVar(&path, "config", "", "the configuration `FILE` of the fleet, that of `controld serve`")
		f.StringVar(&output, "output", "-", "the `FILE` that is written; - for standard output")
	}); err != nil {
		return err
	}
	switch {
	case path == "":
		return call.misused("--config is required")
	case output == "":
		return call.misused("--output is empty")
	}
	c, err := config.Load(path)
	if err != nil {
		return wrongConfig(err)
	}
	if c.ScaleDown == nil {
		fmt.Fprintf(call.stderr, "%s has no scale_down: the snapshot has its defaults, and nothing of the fleet is scaled down\n", path)
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

// takeSnapshot reads the fleet through the adapters of its configuration. It
// sweeps nothing, and so needs no name among the replicas.
func takeSnapshot(ctx context.Context, c *config.Config, call *call) (_ policy.Snapshot, _ []fleet.Decided, err error) {
	log := telemetry.NewLogger("controld", string(c.Log.Level), string(c.Log.Format), call.stderr)
	hub, err := newGitHub(ctx, c.GitHub, log)
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	p, err := newParts(ctx, c, log)
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
		Store: p.store, Queue: p.queue, Compute: p.compute, GitHub: hub, Guards: p.guards, Jobs: jobOptions(c, p.jobs, hub),
		Pools: offered, Classes: classes(c), HostKey: p.hostKey, ScaleDown: idle, Replica: "snapshot", Log: log.Named("fleet"),
	})
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	return f.Snapshot(ctx, time.Now())
}
