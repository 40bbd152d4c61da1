package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	standinrunner "github.com/remuda-ci/remuda/internal/githubsim/runner"
	scaledown "github.com/remuda-ci/remuda/internal/plan"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// TestSnapshot: of a fleet that runs, a plan of its snapshot and a dry run of
// its refresh say the same about every host.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	dir, programs := t.TempDir(), programsBesideEachOther(t)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	hub := startDaemon(t, "github-standin", "--addr", "127.0.0.1:0", "--state-dir", filepath.Join(dir, "github"))
	defer hub.stop()
	if err := standinrunner.LayOut(filepath.Join(dir, "runner"), filepath.Join(programs, "standin-runner")); err != nil {
		t.Fatal(err)
	}
	config := write(t, "controld.yaml", fmt.Sprintf(`
grpc: {addr: "127.0.0.1:0"}
http: {addr: "127.0.0.1:0"}
store: {sqlite: {path: %[1]s/remuda.db}}
compute: {process: {directory: %[1]s/cloud, agentd: %[2]s/agentd, runner: %[1]s/runner}}
github: {url: "http://%[3]s/api/v3", token_file: %[4]s}
sweeps: {scale_down: 1h}
scale_down:
  minimum_running_time: 1ms
  idle: [{cron: "* * * * *", time_zone: UTC, idle_count: 1, eviction_strategy: newest_first}]
`, dir, programs, hub.addrs["github"], write(t, "token", "any\n")))
	daemon := startDaemon(t, "serve", "--config", config)
	defer daemon.stop()
	fleet := daemon.fleet()
	hosts := map[string]bool{}
	for _, run := range []string{"1", "2"} {
		got, err := fleet.Provision(ctx, &remudav1.ProvisionRequest{
			Repository: repository, RunId: run, InstanceCount: proto.Int32(2), Timeout: durationpb.New(time.Minute),
		})
		if err != nil {
			t.Fatalf("%v\n%s", err, daemon.log)
		}
		for _, i := range got.GetInstances() {
			hosts[i.GetInstanceId()] = true
		}
	}
	defer func() {
		for id := range hosts {
			if _, err := fleet.TerminateInstance(ctx, &remudav1.TerminateInstanceRequest{InstanceId: id, Reason: "end of the test"}); err != nil {
				t.Error(err)
			}
		}
	}()

	file := filepath.Join(dir, "fleet.json")
	if got := controld(t, "snapshot", "--config", config, "--output", file); got.code != 0 || got.stdout != "" {
		t.Fatalf("snapshot: %+v", got)
	}
	if mode, err := os.Stat(file); err != nil || mode.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", mode, err)
	}
	text, err := os.ReadFile(file)
	var said struct {
		Fleet struct {
			Settings struct{ ScaleDownEvery time.Duration }
		}
	}
	if err = errors.Join(err, json.Unmarshal(text, &said)); err != nil || said.Fleet.Settings.ScaleDownEvery != time.Hour {
		t.Errorf("the fleet scales down every %s in the file, want every hour: %v", said.Fleet.Settings.ScaleDownEvery, err)
	}
	plan := controld(t, "plan", "--snapshot", file, "--output", "json")
	var planned []scaledown.Decision
	if err := json.Unmarshal([]byte(plan.stdout), &planned); err != nil || len(planned) != len(hosts) {
		t.Fatalf("plan: %+v, %v", plan, err)
	}
	refresh, err := fleet.Refresh(ctx, &remudav1.RefreshRequest{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	decided := map[string]bool{}
	for _, d := range refresh.GetDecisions() {
		if d.GetSweep() != "scale_down" {
			continue
		}
		decided[d.GetInstanceId()+": "+strings.ToLower(strings.TrimPrefix(d.GetAction().String(), "ACTION_"))+", "+d.GetReason()] = true
	}
	kept := 0
	for _, p := range planned {
		action := strings.TrimPrefix(string(p.Action), "deregister_and_")
		if action == "keep" {
			kept++
		}
		if !decided[p.InstanceID+": "+action+", "+p.Reason] {
			t.Errorf("planned %+v, and a dry run says:\n%v", p, refresh.GetDecisions())
		}
	}
	if kept != 1 {
		t.Errorf("%d hosts are kept idle, want 1: %s", kept, plan.stdout)
	}
}

// TestSnapshotOfADev: its state directory says all, what goes into plan by a
// pipe is planned, and nothing is changed.
func TestSnapshotOfADev(t *testing.T) {
	racepass.CoveredBy(t, "TestSnapshot")
	t.Parallel()
	s := startDev(t, "scale_down: {minimum_running_time: 0s}\n")
	host := s.provision("301").GetInstances()[0].GetInstanceId()
	controld := filepath.Join(s.options.Bin, "controld")
	take := exec.CommandContext(s.ctx, controld, "snapshot", "--state-dir", s.options.StateDir, "--config", s.options.Config)
	plan := exec.CommandContext(s.ctx, controld, "plan", "--snapshot", "-")
	var err error
	if plan.Stdin, err = take.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	take.Stderr = &said
	if err := take.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := plan.CombinedOutput()
	if err := errors.Join(err, take.Wait()); err != nil {
		t.Fatalf("%v\n%s%s", err, said.String(), out)
	}
	bare, bareSaid := exec.CommandContext(s.ctx, controld, "snapshot", "--state-dir", s.options.StateDir), bytes.Buffer{}
	bare.Stderr = &bareSaid
	if err := bare.Run(); err != nil || !strings.HasPrefix(bareSaid.String(), "no --config was given: the snapshot has the defaults of scale_down") {
		t.Errorf("without its configuration: %v, it says %q", err, bareSaid.String())
	}
	if !strings.Contains(string(out), host+"  deregister_and_terminate  idle, beyond the 0 that are kept") || said.Len() > 0 {
		t.Errorf("the plan is\n%s\nand snapshot says %q", out, said.String())
	}
}

// TestSnapshotRefuses: without a configuration, and with a wrong one.
func TestSnapshotRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no configuration":     {nil, exitUsage, "--config or --state-dir is required"},
		"no output":            {[]string{"--config", "x", "--output", ""}, exitUsage, "--output is empty"},
		"no such file":         {[]string{"--config", "/none.yaml"}, exitConfiguration, "/none.yaml"},
		"a wrong one":          {[]string{"--config", write(t, "wrong.yaml", "nonsense: 1\n")}, exitConfiguration, "nonsense"},
		"no dev on it":         {[]string{"--state-dir", t.TempDir()}, exitFailure, "start `controld dev` with it"},
		"an argument too many": {[]string{"--config", "x", "y"}, exitUsage, "one argument too many"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := controld(t, append([]string{"snapshot"}, test.args...)...); got.code != test.code || !strings.Contains(got.stderr, test.says) || got.stdout != "" {
				t.Errorf("%+v, want exit code %d and %q", got, test.code, test.says)
			}
		})
	}
}
