package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/demo/stage"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/retry"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// configuration of the demo: a boot of 3 s stands for EC2's minute. An idle host expires after 20 s instead of 5 minutes. It is given
// to a run until 2 s before that, which leaves a busy machine the time to come that far. A hot host has the usual time, since it
// becomes hot while other runs go on. The due sweep comes rarely, so that a Refresh is what ends the hosts that have expired, and what
// finds that a host has become hot.
//
// Jobs share this machine's Go build cache, or the sample that builds a Go
// program would compile the standard library first.
const configuration = `
compute:
  process:
    boot_delay: 3s
    environment:
      GOCACHE: %q
timeouts:
  idle: 20s
  claim_margin: 2s
sweeps:
  due: 5m
pools:
  default:
    standby: clean
  hot:
    standby: listening
    idle_time: 5m
`

const repository = "acme/shop"

// demo is what happened so far.
type demo struct {
	*stage.Stage
	examples string
	slow     local.Times // of GitHub and its runner
	acts     []act
	expired  int
}

// act is one run: provisioned, run, released.
type act struct {
	name     string
	runID    string
	pool     string
	workflow string
	hosts    []string
	reused   int32
	created  int32
	pooled   int32
	// registered is how many of its hosts went through config.sh after the run had asked for them, and configured how many calls of
	// config.sh GitHub got in that time, those for hosts of other runs included.
	registered, configured int
	provision              time.Duration // until its runners listened
	firstStep              time.Duration // from the same moment until a step of a job began
	run                    local.Run
	ran                    time.Duration
}

// play runs the whole demo and checks every claim that it makes.
func (d *demo) play(ctx context.Context) error {
	filled := d.fillHotPool(ctx)
	cold, err := d.act(ctx, act{name: "cold", runID: "1001", pool: "default", workflow: "matrix.yml"}, 3)
	if err != nil {
		return err
	}
	if cold.created != 3 || cold.reused != 0 {
		return fmt.Errorf("the cold run reused %d hosts and created %d, want 0 and 3", cold.reused, cold.created)
	}
	warm, err := d.act(ctx, act{name: "warm", runID: "1002", pool: "default", workflow: "matrix.yml"}, 3)
	if err != nil {
		return err
	}
	if warm.reused != 3 || !slices.Equal(sorted(cold.hosts), sorted(warm.hosts)) {
		return fmt.Errorf("the warm run reused %d hosts (%v), want the 3 of the cold one (%v)", warm.reused, warm.hosts, cold.hosts)
	}
	if cold.registered != 3 || cold.configured < 3 || warm.registered != 3 { // what the hot runs do without
		return fmt.Errorf("the cold run registered %d hosts by %d calls of config.sh, and the warm run %d", cold.registered, cold.configured, warm.registered)
	}
	if err := d.proveClean(cold, warm); err != nil {
		return err
	}
	more, err := d.act(ctx, act{name: "more than the pool", runID: "1003", pool: "default", workflow: "go-build.yml"}, 5)
	if err != nil {
		return err
	}
	if more.reused != 3 || more.created != 2 {
		return fmt.Errorf("the third run reused %d hosts and created %d, want 3 and 2", more.reused, more.created)
	}
	if err := d.hot(ctx, filled); err != nil {
		return err
	}
	return d.expire(ctx, 5)
}

// act provisions hosts for a run, runs its workflow on them and releases them.
func (d *demo) act(ctx context.Context, a act, count int32) (act, error) {
	d.Say("\nRun %s (%s): provisioning %d hosts for %s ...", a.runID, a.name, count, a.workflow)
	if err := d.serve(ctx, &a, count); err != nil {
		return a, err
	}
	if err := d.release(ctx, &a); err != nil {
		return a, err
	}
	d.Say("  released: %d hosts deregistered, cleaned and pooled", a.pooled)
	d.acts = append(d.acts, a)
	return a, nil
}

// serve provisions hosts for a run and then runs its workflow, whose jobs wait for the hosts as in examples/workflow.yml.
func (d *demo) serve(ctx context.Context, a *act, count int32) error {
	text, err := os.ReadFile(filepath.Join(d.examples, "workflows", a.workflow))
	if err != nil {
		return fmt.Errorf("read the workflow: %w", err)
	}
	asked := time.Now()
	if err := d.provision(ctx, a, count); err != nil {
		return fmt.Errorf("provision for run %s: %w", a.runID, err)
	}
	d.Say("  ready in %s: %d reused, %d created", stage.Seconds(a.provision), a.reused, a.created)
	began := time.Now()
	if _, err := d.GitHub.StartRun(ctx, repository, a.runID, string(text)); err != nil {
		return err
	}
	if a.run, err = d.GitHub.WaitRun(ctx, a.runID, d.follow()); err != nil {
		return err
	}
	a.ran = time.Since(began)
	if a.run.Conclusion != "success" {
		return fmt.Errorf("run %s came out as %s:\n%s", a.runID, a.run.Conclusion, stage.Logs(a.run))
	}
	first, err := d.firstStep(ctx, a.runID)
	a.firstStep = first.Sub(asked)
	return err
}

// provision gets hosts for a run, and counts the registrations that were made for it.
func (d *demo) provision(ctx context.Context, a *act, count int32) error {
	before, calls, err := d.registrations(ctx)
	if err != nil {
		return err
	}
	asked := time.Now()
	got, err := d.Fleet.Provision(ctx, &remudav1.ProvisionRequest{
		Repository: repository, RunId: a.runID, Pool: a.pool, InstanceCount: proto.Int32(count), Timeout: durationpb.New(3 * time.Minute),
	})
	if err != nil {
		return err
	}
	a.provision, a.reused, a.created = time.Since(asked), got.GetReusedCount(), got.GetCreatedCount()
	for _, i := range got.GetInstances() {
		a.hosts = append(a.hosts, i.GetInstanceId())
	}
	after, callsNow, err := d.registrations(ctx)
	a.registered, a.configured = registeredSince(before, after, a.hosts), callsNow-calls
	return err
}

func (d *demo) release(ctx context.Context, a *act) error {
	released, err := d.Fleet.Release(ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: a.runID, Wait: true})
	if err != nil {
		return fmt.Errorf("release run %s: %w", a.runID, err)
	}
	if a.pooled = released.GetPooledCount(); int(a.pooled) != len(a.hosts) {
		return fmt.Errorf("run %s: %d of %d hosts came back to the pool", a.runID, a.pooled, len(a.hosts))
	}
	return nil
}

// follow says each job as it completes.
func (d *demo) follow() func(local.Run) {
	said := map[string]bool{}
	return func(run local.Run) {
		for _, j := range run.Jobs {
			if j.Status == "completed" && !said[j.Name] {
				said[j.Name] = true
				d.Say("  job %s on %s: %s", j.Name, stage.HostOf(j.Runner), j.Conclusion)
			}
		}
	}
}

// The lines that the first step of a sample workflow prints.
const (
	cleanLine    = "work directory clean"
	leftoverLine = "found leftover: run "
)

// proveClean reads in the logs that the cold run left a file in the work
// directory of each host, and that the warm one found no such file on them.
func (d *demo) proveClean(cold, warm act) error {
	for _, a := range []act{cold, warm} {
		clean := map[string]bool{}
		for _, j := range a.run.Jobs {
			for line := range strings.Lines(j.Log) {
				line = strings.TrimRight(line, "\n")
				if from, found := strings.CutPrefix(line, leftoverLine); found && !strings.HasPrefix(from, a.runID+" ") {
					return fmt.Errorf("run %s, job %s found what another run had left: %s", a.runID, j.Name, line)
				}
				if line == cleanLine {
					clean[stage.HostOf(j.Runner)] = true
				}
			}
		}
		if len(clean) != len(a.hosts) {
			return fmt.Errorf("run %s saw a clean work directory on %d of %d hosts", a.runID, len(clean), len(a.hosts))
		}
	}
	d.Say("  the files that run %s left are gone from all %d hosts", cold.runID, len(warm.hosts))
	return nil
}

// expire waits for the idle time and lets a Refresh end what has expired.
func (d *demo) expire(ctx context.Context, hosts int) error {
	listed, err := d.Fleet.ListInstances(ctx, &remudav1.ListInstancesRequest{States: []remudav1.State{remudav1.State_STATE_IDLE}})
	if err != nil {
		return fmt.Errorf("list idle hosts: %w", err)
	}
	var last time.Time
	for _, i := range listed.GetInstances() {
		if t := i.GetThreshold().AsTime(); t.After(last) {
			last = t
		}
	}
	if left := time.Until(last); left > 0 {
		d.Say("\n%d hosts are idle; the last of them expires in %s ...", len(listed.GetInstances()), stage.Seconds(left))
	} else {
		d.Say("\n%d hosts are idle, and their idle time is over", len(listed.GetInstances()))
	}
	if err := retry.Sleep(ctx, time.Until(last)+100*time.Millisecond); err != nil {
		return err
	}
	refreshed, err := d.Fleet.Refresh(ctx, &remudav1.RefreshRequest{})
	if err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	for _, decision := range refreshed.GetDecisions() {
		if decision.GetAction() == remudav1.Action_ACTION_TERMINATE {
			d.expired++
			d.Say("  refresh: %s is terminated: %s", decision.GetInstanceId(), decision.GetReason())
		}
	}
	if d.expired != hosts {
		return fmt.Errorf("the refresh ended %d hosts, want %d", d.expired, hosts)
	}
	if err := d.NothingLeft(ctx); err != nil {
		return err
	}
	d.Say("  no host process and no registration is left")
	return nil
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// summary prints what happened and how long it took.
func (d *demo) summary() {
	d.Say("")
	w := stage.Table(d.Out)
	fmt.Fprintln(w, "RUN\tWHAT\tHOSTS\tREUSED\tCREATED\tJOBS RAN IN\tPOOLED AGAIN")
	for _, a := range d.acts {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%d\n", a.runID, a.name, len(a.hosts), a.reused, a.created, stage.Seconds(a.ran), a.pooled)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "RUN\tJOB\tHOST\tTOOK\tRESULT")
	for _, a := range d.acts {
		for _, j := range a.run.Jobs {
			// GitHub tells times in whole seconds.
			took := j.CompletedAt.Sub(j.StartedAt).Seconds()
			fmt.Fprintf(w, "%s\t%s\t%s\t%.0f s\t%s\n", a.runID, j.Name, stage.HostOf(j.Runner), took, j.Conclusion)
		}
	}
	_ = w.Flush() // to a terminal or a pipe: an error cannot be reported
	d.Say("\n%d hosts expired and were ended. No process and no registration is left.", d.expired)
	d.times()
}
