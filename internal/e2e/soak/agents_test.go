//go:build soak

package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	agentCallers = 8
	changeEvery  = 15 * time.Second
	// leastOfEach is how many jobs agents of each version have to run while controld is of each version.
	leastOfEach = 20
)

// TestRollingUpgradeOfAgents has real agents of two versions serve runs with jobs, while controld is killed every 15 s and becomes one of the other version.
// A host is launched with the agent of the controld at that moment, and leaves after five runs. So agents of each version meet each controld.
func TestRollingUpgradeOfAgents(t *testing.T) {
	lasts := minutes(t, 6)
	ctx, cancel := context.WithTimeout(t.Context(), lasts+10*time.Minute)
	defer cancel()
	u := &upgrade{TB: t, ctx: ctx, dir: filepath.Join(t.TempDir(), "state"), versions: [2]string{older(t), bin(t)}, agents: map[string]int{}}
	u.start()
	load, stop := context.WithTimeout(ctx, lasts)
	defer stop()
	var callers sync.WaitGroup
	for range agentCallers {
		callers.Go(func() {
			for load.Err() == nil {
				u.run()
			}
		})
	}
	u.change(load)
	callers.Wait()
	u.judge()
}

// upgrade is a `controld dev` whose version changes. Version 0 is the one before.
type upgrade struct {
	testing.TB
	ctx      context.Context
	dir      string
	config   string
	log      *os.File
	versions [2]string // directories of programs
	changes  int

	system atomic.Pointer[local.System]
	now    atomic.Int32 // controld's version
	last   atomic.Int64 // run id

	mu      sync.Mutex
	agents  map[string]int // the version of each host's agent, by instance id
	jobs    [2][2]int      // by the version of controld before the job, and of the agent
	retried map[codes.Code]int
	wrong   []string
}

func (u *upgrade) start() {
	u.Helper()
	u.retried = map[codes.Code]int{}
	var err error
	u.log, err = os.Create(filepath.Join(u.TempDir(), "controld.log"))
	check(u.TB, err)
	u.config = filepath.Join(u.TempDir(), "controld.yaml")
	check(u.TB, os.WriteFile(u.config, []byte("pools: {default: {max_runtime: 2h, idle_time: 1m, max_uses: 5}}\nsweeps: {due: 1s}\n"), 0o600))
	u.become(0)
	u.Cleanup(func() {
		if err := u.system.Load().Stop(); err != nil {
			u.Error(err)
		}
		_ = u.log.Close() // it was written by controld
		endProcesses(u.TB, u.dir)
	})
}

func (u *upgrade) become(version int) {
	u.Helper()
	system, err := local.Start(u.ctx, local.Options{Bin: u.versions[version], StateDir: u.dir, Config: u.config, Stderr: u.log})
	check(u.TB, err)
	u.now.Store(int32(version))
	u.system.Store(system)
}

// change kills controld and starts the other version, again and again.
func (u *upgrade) change(ctx context.Context) {
	u.Helper()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(changeEvery):
		}
		u.system.Load().Kill()
		u.become(1 - int(u.now.Load()))
		u.changes++
	}
}

// run is the life of one run: some hosts, a job on one of them, and the release.
func (u *upgrade) run() {
	id := fmt.Sprint(1000 + u.last.Add(1))
	req := &remudav1.ProvisionRequest{Repository: repository, RunId: id, RequestId: "request-" + id, InstanceCount: proto.Int32(1 + rand.Int32N(3))}
	var got *remudav1.ProvisionResponse
	if !u.insist("provision "+id, func(ctx context.Context, fleet remudav1.FleetServiceClient) (err error) {
		got, err = fleet.Provision(ctx, req)
		return err
	}) {
		return
	}
	for _, host := range got.GetInstances() {
		u.seen(host.GetInstanceId())
	}
	u.work(id)
	u.insist("release "+id, func(ctx context.Context, fleet remudav1.FleetServiceClient) error {
		_, err := fleet.Release(ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: id, Wait: true})
		return err
	})
}

// work has a job run, now and then for longer than controld keeps its version.
func (u *upgrade) work(id string) {
	script, controld := "echo done", u.now.Load()
	if rand.IntN(20) == 0 {
		script = "sleep 20"
	}
	github := u.system.Load().GitHub
	if _, err := github.StartRun(u.ctx, repository, id, "on: push\njobs:\n  work:\n    runs-on: \"${{ github.run_id }}\"\n    steps:\n      - run: "+script+"\n"); err != nil {
		u.say("start run %s: %v", id, err)
		return
	}
	run, err := github.WaitRun(u.ctx, id, nil)
	if err != nil || run.Conclusion != "success" {
		u.say("the job of run %s came out as %q (%v): %+v", id, run.Conclusion, err, run.Jobs)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for host, agent := range u.agents {
		if strings.HasSuffix(run.Jobs[0].Runner, host) {
			u.jobs[controld][agent]++
			return
		}
	}
	u.wrong = append(u.wrong, fmt.Sprintf("the job of run %s ran on %s, which no run was given", id, run.Jobs[0].Runner))
}

// seen looks up once which version the agent of a host is.
func (u *upgrade) seen(host string) {
	u.mu.Lock()
	_, known := u.agents[host]
	u.mu.Unlock()
	if known {
		return
	}
	version, err := u.agentOf(host)
	if err != nil {
		u.say("%v", err)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.agents[host] = version
}

func (u *upgrade) agentOf(host string) (version int, err error) {
	processes, err := local.Processes(filepath.Join(u.dir, "hosts", host))
	if err != nil {
		return 0, err
	}
	for _, p := range processes {
		for version, programs := range u.versions {
			if strings.HasPrefix(p.Command, filepath.Join(programs, "agentd")+" ") {
				return version, nil
			}
		}
	}
	return 0, fmt.Errorf("host %s has no agent of either version: %v", host, processes)
}

// insist makes a call until there is an answer. An answer that no change of the version excuses is noted.
func (u *upgrade) insist(what string, call func(ctx context.Context, fleet remudav1.FleetServiceClient) error) bool {
	var last error
	for began := time.Now(); time.Since(began) < giveUpAfter; time.Sleep(rand.N(200 * time.Millisecond)) {
		ctx, cancel := context.WithTimeout(u.ctx, time.Minute)
		last = call(ctx, u.system.Load().Fleet)
		cancel()
		code := status.Code(last)
		if last == nil {
			return true
		}
		u.mu.Lock()
		u.retried[code]++
		u.mu.Unlock()
		if code != codes.Unavailable && code != codes.DeadlineExceeded && code != codes.Canceled { // a connection is closed with the system that it leads to
			break
		}
	}
	u.say("%s: %v", what, last)
	return false
}

func (u *upgrade) say(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.wrong = append(u.wrong, fmt.Sprintf(format, args...))
}

// judge looks at what is left, and prints the table.
func (u *upgrade) judge() {
	u.Helper()
	for _, what := range u.wrong {
		u.Error(what)
	}
	names := [2]string{"the version before", "this version"}
	rows := [][2]string{{"changes of controld's version", fmt.Sprint(u.changes)}, {"hosts", fmt.Sprint(len(u.agents))}, {"runs", fmt.Sprint(u.last.Load())}}
	for controld, jobs := range u.jobs {
		for agent, n := range jobs {
			rows = append(rows, [2]string{fmt.Sprintf("jobs with controld of %s and an agent of %s", names[controld], names[agent]), fmt.Sprint(n)})
			if n < leastOfEach {
				u.Errorf("%d jobs with controld of %s and an agent of %s, want at least %d", n, names[controld], names[agent], leastOfEach)
			}
		}
	}
	report(u.TB, append(rows, [2]string{"calls made again", retries(u.retried)}))
	if err := u.settled(); err != nil {
		u.Error(err)
	}
}

// settled waits until no host serves a run, and each that lives has its agent.
func (u *upgrade) settled() (err error) {
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		if err = u.left(); err == nil {
			return nil
		}
	}
	return err
}

func (u *upgrade) left() error {
	got, err := u.system.Load().Fleet.ListInstances(u.ctx, &remudav1.ListInstancesRequest{PageSize: 500})
	if err != nil {
		return err
	}
	lives := 0
	for _, i := range got.GetInstances() {
		if i.GetState() == remudav1.State_STATE_TERMINATED {
			continue
		}
		lives++
		if i.GetPooledTime() == nil {
			return fmt.Errorf("after all runs host %s is %s of run %q: %s", i.GetInstanceId(), i.GetState(), i.GetRunId(), i.GetReason())
		}
	}
	processes, err := local.Processes(filepath.Join(u.dir, "hosts"))
	if err != nil {
		return err
	}
	agents := 0
	for _, p := range processes {
		if strings.Contains(strings.Fields(p.Command)[0], "/agentd") {
			agents++
		}
	}
	if agents != lives {
		return fmt.Errorf("%d hosts live, and %d agents run", lives, agents)
	}
	return nil
}
