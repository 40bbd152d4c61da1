package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// TestMain lets the test binary stand in for agentd, by the name that it is called with:
// what is tested is this code, under the race detector if the tests are. The hook calls it by its own name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "agentd" || slices.Equal(os.Args[1:], []string{"check-fork"}) {
		standbyWait, _ = time.ParseDuration(os.Getenv(standbyWaitVariable))
		main()
		os.Exit(0)
	}
	testrun.Together()
	code := m.Run()
	testrun.System.Remove()
	os.Exit(code)
}

// standbyWaitVariable sets how long a job waits on a host in standby.
const standbyWaitVariable = "AGENTD_TEST_STANDBY_WAIT"

const (
	repository = "acme/app"
	patience   = 3 * time.Minute // for processes on a machine that is busy
	// longestLook is the pause between two looks at something that takes long.
	longestLook = 100 * time.Millisecond
)

// machine is one host with its agentd, the store and the stand-in.
type machine struct {
	t      *testing.T
	id     string // unique, since processes are killed by it
	key    string // of its rows
	dir    string
	store  rows
	env    []string // added to agentd's
	policy lifecycle.Policy
	github *httptest.Server
	// acquiring is locked by a test that keeps listeners from acquiring jobs, and asked has a value while one tries.
	acquiring sync.RWMutex
	asked     chan struct{}
	agent     *exec.Cmd
	init      bool // agentd is started by a leader of a session, as by its init
}

// rows are what the part of controld uses of the store.
type rows interface {
	CreateInstance(ctx context.Context, r lifecycle.Record) error
	UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error)
	Instance(ctx context.Context, hostKey string) (lifecycle.Record, error)
	Reports(ctx context.Context, hostKeys []string) (map[string]lifecycle.Report, error)
}

// newMachine is one of a launcher, with a database file.
func newMachine(t *testing.T, edits ...func(config map[string]any)) *machine {
	t.Helper()
	m := emptyMachine(t, anyID())
	file, err := db.Open(m.path("remuda.db"), db.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, file.Close()) })
	m.store = sqlite.New(file)
	m.configure(map[string]any{
		"instance_id": m.id, "store": map[string]any{"sqlite": map[string]any{"path": m.path("remuda.db")}},
	}, edits)
	return m
}

// gated lets a test hold the calls with which a listener acquires a job that GitHub has assigned to it.
func (m *machine) gated(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, path.Base(protocol.PathAcquire)) {
			select {
			case m.asked <- struct{}{}:
			default:
			}
			m.acquiring.RLock()
			defer m.acquiring.RUnlock()
		}
		h.ServeHTTP(w, r)
	})
}

// anyID is an instance id that no other machine has, in this test binary or another
// one: machine.end kills all processes that are marked with the id.
func anyID() string { return "i-" + strings.ToLower(rand.Text()[:17]) }

// emptyMachine has no store and no configuration yet.
func emptyMachine(t *testing.T, id string) *machine {
	t.Helper()
	m := &machine{t: t, id: id, key: id, dir: t.TempDir(), policy: lifecycle.DefaultPolicy(), asked: make(chan struct{}, 1)}
	self, err := os.Executable()
	check(t, err)
	standin := filepath.Join(testrun.System.Dir(t), "standin-runner")
	// A process that starts at the same time would hold the scripts open, and
	// a file that is open for writing cannot be run.
	syscall.ForkLock.RLock()
	err = runner.LayOut(filepath.Join(m.dir, "distribution"), standin)
	syscall.ForkLock.RUnlock()
	check(t, err)
	check(t, os.Symlink(self, filepath.Join(m.dir, "agentd")))

	sim, err := githubsim.New(githubsim.Options{StateDir: filepath.Join(m.dir, "github"), Times: githubsim.QuickTimes})
	check(t, err)
	m.github = httptest.NewServer(m.gated(sim.Handler()))
	t.Cleanup(func() { check(t, sim.Close()); m.github.Close() })

	t.Cleanup(m.end)
	return m
}

// configure writes agentd's configuration: what every machine has, and its own.
func (m *machine) configure(own map[string]any, edits []func(config map[string]any)) {
	m.t.Helper()
	config := map[string]any{
		"directory": m.path("host"),
		"runner":    map[string]any{"distribution": m.path("distribution"), "minimum_free_mib": 1},
		"intervals": map[string]any{
			"read_idle": "50ms", "read_running": "50ms", "heartbeat": "500ms",
		},
		"log_level": "debug",
	}
	maps.Copy(config, own)
	for _, edit := range edits {
		edit(config)
	}
	text, err := json.Marshal(config) // which is YAML
	check(m.t, err)
	check(m.t, os.WriteFile(m.path("agentd.yaml"), text, 0o600))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *machine) path(elem ...string) string {
	return filepath.Join(append([]string{m.dir}, elem...)...)
}

// start starts agentd as its init would.
func (m *machine) start() {
	m.t.Helper()
	m.agent = exec.Command(m.path("agentd"), "--config", m.path("agentd.yaml"))
	if m.init {
		m.agent = exec.Command("/bin/sh", "-c", `"$@"; exit $?`, "init", m.path("agentd"), "--config", m.path("agentd.yaml"))
		m.agent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	// A program with the race detector sleeps a second before it ends.
	m.agent.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", host.InstanceIDVariable+"="+m.id)
	m.agent.Env = append(m.agent.Env, m.env...)
	log, err := os.OpenFile(m.path("agentd.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	check(m.t, err)
	defer log.Close()
	m.agent.Stdout, m.agent.Stderr = log, log
	check(m.t, m.agent.Start())
}

// kill ends agentd as a crash would.
func (m *machine) kill() {
	m.t.Helper()
	check(m.t, m.agent.Process.Signal(syscall.SIGKILL))
	_ = m.agent.Wait()
	m.agent = nil
}

// raceFound is in the log of an agentd that the race detector found something in.
const raceFound = "WARNING: DATA RACE"

// end ends everything of the machine and shows the logs of a failed test.
func (m *machine) end() {
	if m.agent != nil {
		_ = m.agent.Process.Kill()
		_ = m.agent.Wait()
	}
	// Until none is left, also of what is just being forked: what lives may
	// write while its directory is removed.
	m.agent = nil
	for quiet := 0; quiet < 3; time.Sleep(5 * time.Millisecond) {
		pids := m.processes()
		if quiet++; len(pids) > 0 {
			quiet = 0
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if strings.Contains(m.log(), raceFound) {
		m.t.Error("agentd has a data race")
	}
	if m.t.Failed() {
		for _, name := range []string{"agentd.log", "host/logs/runner.log"} {
			text, _ := os.ReadFile(m.path(name))
			m.t.Logf("%s:\n%s", name, text)
		}
	}
}

// processes are the running ones of the machine, except agentd.
func (m *machine) processes() []int {
	entries, err := os.ReadDir("/proc")
	check(m.t, err)
	var pids []int
	for _, e := range entries {
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		mark := []byte(host.InstanceIDVariable + "=" + m.id + "\x00")
		var pid int
		if _, scanErr := fmt.Sscan(e.Name(), &pid); err == nil && scanErr == nil && (m.agent == nil || pid != m.agent.Process.Pid) && bytes.Contains(env, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually waits until f is true. It asks less often the longer that takes: f may
// ask an emulator, which needs more processor time for the answer than the test.
func (m *machine) eventually(what string, f func() bool) {
	m.t.Helper()
	pause := 5 * time.Millisecond
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(pause) {
		if f() {
			return
		}
		pause = min(pause*9/8, longestLook)
	}
	m.t.Fatalf("not within %s: %s", patience, what)
}

// The part of controld.

func (m *machine) record() lifecycle.Record {
	m.t.Helper()
	r, err := m.store.Instance(context.Background(), m.key)
	check(m.t, err)
	return r
}

func (m *machine) report() lifecycle.Report {
	m.t.Helper()
	reports, err := m.store.Reports(context.Background(), []string{m.key})
	check(m.t, err)
	return reports[m.key]
}

func (m *machine) update(f func(r lifecycle.Record) lifecycle.Record) {
	m.t.Helper()
	_, err := m.store.UpdateInstance(context.Background(), f(m.record()))
	check(m.t, err)
}

// create writes the record of a machine launched for the run.
func (m *machine) create(runID string, edits ...func(r *lifecycle.Record)) {
	m.t.Helper()
	now := time.Now()
	q := lifecycle.Request{
		Repository: repository, RunID: runID, RequestID: "request-" + runID, CreatedAt: now,
		Spec: lifecycle.Spec{Pool: "default", RunAttempt: 1, MaxRuntime: time.Hour},
	}
	machine := lifecycle.Machine{InstanceID: m.id, HostKey: m.key, LaunchedAt: now}
	reg := m.token("registration", lifecycle.RegistrationToken)
	r := lifecycle.Launched(machine, q, &reg, now, m.policy)
	for _, edit := range edits {
		edit(&r)
	}
	check(m.t, m.store.CreateInstance(context.Background(), r))
}

func (m *machine) apply(a lifecycle.Action, busy bool) {
	m.t.Helper()
	m.update(func(r lifecycle.Record) lifecycle.Record {
		r, err := lifecycle.Apply(r, lifecycle.Decision{Action: a, Busy: busy, Reason: "test"}, time.Now(), m.policy)
		check(m.t, err)
		return r
	})
}

// release releases the run, with a remove token in the same write.
func (m *machine) release() {
	m.t.Helper()
	busy := m.report().Busy
	remove := m.token("remove", lifecycle.RegistrationRemove)
	m.update(func(r lifecycle.Record) lifecycle.Record {
		r, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionRelease, Busy: busy, Reason: "test"}, time.Now(), m.policy)
		check(m.t, err)
		r.Registration = &remove
		return r
	})
}

func (m *machine) claim(runID string) {
	m.t.Helper()
	reg := m.token("registration", lifecycle.RegistrationToken)
	m.update(func(r lifecycle.Record) lifecycle.Record {
		r, err := r.Claimed(lifecycle.Claim{
			Now: time.Now(), RunID: runID, Repository: repository, BindTo: m.policy.Reuse.TrustKey(repository), RequestID: "request-" + runID, MaxRuntime: time.Hour,
			Registration: &reg, Threshold: time.Now().Add(m.policy.ClaimTimeout),
		})
		check(m.t, err)
		return r
	})
}

// signaled waits until the agent answers the record's assignment.
func (m *machine) signaled(want lifecycle.Signal) lifecycle.Report {
	m.t.Helper()
	var p lifecycle.Report
	assignment := m.record().Assignment
	m.eventually(fmt.Sprintf("signal %s of assignment %d", want, assignment), func() bool {
		p = m.report()
		return p.Signal == want && p.Assignment == assignment
	})
	return p
}

// deregistered waits until the agent says that the host is clean. GitHub then has no runner.
func (m *machine) deregistered() {
	m.t.Helper()
	m.signaled(lifecycle.SignalRemoveRegOK)
	m.noRunners()
}

// leavesNothing is deregistered for a host that has no process of its runs either.
func (m *machine) leavesNothing() {
	m.t.Helper()
	m.deregistered()
	if pids := m.processes(); len(pids) > 0 {
		m.t.Errorf("processes are left: %v", pids)
	}
}

// noRunners checks that GitHub has no runner.
func (m *machine) noRunners() {
	m.t.Helper()
	if names := m.runners(); len(names) > 0 {
		m.t.Errorf("registrations are left: %v", names)
	}
}

// ready brings the host to run, as a cold Provision does.
func (m *machine) ready(runID string) {
	m.t.Helper()
	m.create(runID)
	m.signaled(lifecycle.SignalRegOK)
	m.apply(lifecycle.ActionReady, false)
}

func (m *machine) log() string {
	text, err := os.ReadFile(m.path("agentd.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	return string(text)
}
