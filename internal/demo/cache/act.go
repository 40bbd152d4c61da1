package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/demo/cache/verdict"
	"github.com/remuda-ci/remuda/internal/demo/stage"
	"github.com/remuda-ci/remuda/internal/host/cachestore"
	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// act is a run that is to be made, and what it must show.
type act struct {
	runID, what string
	from        local.Origin // of a push to main if it is empty
	warm        bool
	marks       []string
}

// step makes a run, from its call of Provision until its host is in the pool again, and measures it. It must get the host; "" is a new one.
func (d *demo) step(ctx context.Context, a act, want string) (host string, err error) {
	d.Say("\nRun %s (%s) ...", a.runID, a.what)
	s := verdict.Step{RunID: a.runID, What: a.what, Warm: a.warm, Expected: append([]string{}, a.marks...)}
	before, began := d.meter.Downloaded(), time.Now()
	stop := d.progress.begin(func() string { return verdict.MB(d.meter.Downloaded() - before) })
	defer stop()

	var reused bool
	if s.Host, reused, err = d.provision(ctx, a.runID); err != nil {
		return "", err
	}
	if reused != (want != "") || reused && s.Host != want {
		return "", fmt.Errorf("run %s got %s (reused: %v), want %q", a.runID, s.Host, reused, want)
	}
	s.Ready = time.Since(began).Seconds()
	run, err := d.run(ctx, a)
	if err != nil {
		return "", err
	}
	s.Ran = time.Since(began).Seconds() - s.Ready
	if d.mechanism, err = d.mechanismOf(s.Host); err != nil {
		return "", err
	}
	released, err := d.release(ctx, a.runID)
	if err != nil {
		return "", err
	}
	s.Release, s.Downloaded = released.Seconds(), d.meter.Downloaded()-before
	stop()
	if err := s.Read(run); err != nil {
		return "", err
	}
	if s.Kept, err = d.kept(s.Host); err != nil {
		return "", err
	}
	d.steps = append(d.steps, s)
	d.Say("  %s on %s: Go %s, npm %s; %s for the run, %s downloaded", a.what, s.Host, verdict.Seconds(s.Go), verdict.Seconds(s.NPM), verdict.Seconds(s.Ran), verdict.MB(s.Downloaded))
	return s.Host, nil
}

// provision gets one host for a run.
func (d *demo) provision(ctx context.Context, runID string) (host string, reused bool, err error) {
	got, err := d.Fleet.Provision(ctx, &remudav1.ProvisionRequest{
		Repository: repository, RunId: runID, InstanceCount: proto.Int32(1), Timeout: durationpb.New(3 * time.Minute),
	})
	if err != nil {
		return "", false, fmt.Errorf("provision for run %s: %w", runID, err)
	}
	return got.GetInstances()[0].GetInstanceId(), got.GetReusedCount() == 1, nil
}

// run runs the workflow on the host of the run.
func (d *demo) run(ctx context.Context, a act) (local.Run, error) {
	if a.from == (local.Origin{}) {
		a.from = ofMain
	}
	if _, err := d.GitHub.StartRunFrom(ctx, repository, a.runID, d.workflow, a.from); err != nil {
		return local.Run{}, err
	}
	run, err := d.GitHub.WaitRun(ctx, a.runID, nil)
	if err == nil && run.Conclusion != "success" {
		err = fmt.Errorf("run %s came out as %s:\n%s", a.runID, run.Conclusion, stage.Logs(run))
	}
	return run, err
}

// release gives the host of a run back, and says how long that takes until it is in the pool.
func (d *demo) release(ctx context.Context, runID string) (time.Duration, error) {
	began := time.Now()
	released, err := d.Fleet.Release(ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: runID, Wait: true})
	if err != nil {
		return 0, fmt.Errorf("release run %s: %w", runID, err)
	}
	if released.GetPooledCount() != 1 {
		return 0, fmt.Errorf("run %s: its host did not come back to the pool", runID)
	}
	return time.Since(began), nil
}

// cachesDir is where a host has its caches.
func (d *demo) cachesDir(host string) string { return filepath.Join(d.HostDir(host), "caches") }

// store is that of an idle host. No view is made with it, so the mechanism does not matter.
func (d *demo) store(host string) (*cachestore.Store, error) {
	return cachestore.New(cachestore.Options{Dir: d.cachesDir(host), Mechanism: cachestore.Copy{}})
}

// kept is how many bytes the caches of an idle host have.
func (d *demo) kept(host string) (sum int64, err error) {
	store, err := d.store(host)
	if err != nil {
		return 0, err
	}
	held, err := store.Held()
	for _, c := range held {
		sum += int64(c.Bytes)
	}
	return sum, err
}

// mechanismOf is how the views of a host that has a run were made.
func (d *demo) mechanismOf(host string) (string, error) {
	data, err := os.ReadFile(filepath.Join(d.cachesDir(host), "view.json"))
	if err != nil {
		return "", fmt.Errorf("read how the views were made: %w", err)
	}
	var view struct {
		Mechanism string `json:"mechanism"`
	}
	err = json.Unmarshal(data, &view)
	return view.Mechanism, err
}
