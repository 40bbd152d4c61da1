package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/dev"
	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

func TestDevServesARunColdAndWarm(t *testing.T) {
	t.Parallel()
	s := startDev(t, "")
	cold := s.provision("101")
	if cold.GetCreatedCount() != 1 {
		t.Errorf("created %d hosts for the first run, want 1", cold.GetCreatedCount())
	}
	host := cold.GetInstances()[0].GetInstanceId()
	if job := s.job("101", "echo served by $RUNNER_NAME"); job.Conclusion != "success" || !strings.HasSuffix(job.Runner, host) || !strings.Contains(job.Log, "served by "+job.Runner) {
		t.Errorf("the job came out as %q on %q:\n%s", job.Conclusion, job.Runner, job.Log)
	}
	if got := s.release("101"); got.GetPooledCount() != 1 {
		t.Errorf("pooled %d hosts, want 1", got.GetPooledCount())
	}
	warm := s.provision("102")
	if warm.GetReusedCount() != 1 || warm.GetInstances()[0].GetInstanceId() != host {
		t.Errorf("the second run got %v, want %s again", warm.GetInstances(), host)
	}
	if got := s.get("/healthz") + s.get("/readyz"); got != "alive\nready\n" {
		t.Errorf("health and readiness say %q", got)
	}
	metrics := s.get("/metrics")
	for _, want := range []string{
		`remuda_hosts{pool="default",state="running"} 1`, `remuda_calls_total{operation="store.claim_instance",result="ok"} 1`,
		`remuda_calls_total{operation="compute.launch",result="ok"} 1`, "remuda_claim_duration_seconds_count 1", "remuda_release_duration_seconds_count 1",
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics have no %s", want)
		}
	}
}

func TestDevGoesOnAfterAKill(t *testing.T) {
	racepass.CoveredBy(t, "TestDevServesARunColdAndWarm")
	t.Parallel()
	s := startDev(t, "")
	host := s.provision("201").GetInstances()[0].GetInstanceId()
	github := s.GitHub.URL()
	s.Kill()
	if left := s.processes("hosts"); len(left) == 0 {
		t.Error("the hosts died with controld")
	}
	s.start()
	if s.GitHub.URL() != github {
		t.Errorf("the stand-in is at %s, it was at %s", s.GitHub.URL(), github)
	}
	if job := s.job("201", "echo still here"); job.Conclusion != "success" || !strings.HasSuffix(job.Runner, host) {
		t.Errorf("the job came out as %q on %q, want host %s:\n%s", job.Conclusion, job.Runner, host, job.Log)
	}
}

func TestDevAttachesToAStandinThatSomebodyElseRuns(t *testing.T) {
	racepass.CoveredBy(t, "TestDevServesARunColdAndWarm")
	t.Parallel()
	hub, err := githubsim.New(githubsim.Options{StateDir: t.TempDir(), Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hub.Serve(ctx, listener) }()
	s := &stage{t: t, ctx: ctx, log: &buffer{}}
	s.options = local.Options{
		Bin: programsBesideEachOther(t), StateDir: filepath.Join(t.TempDir(), "state"), Stderr: s.log,
		GitHubAddr: listener.Addr().String(),
	}
	s.start()
	s.provision("901")
	if runners, err := s.GitHub.Runners(ctx); err != nil || len(runners) != 1 {
		t.Errorf("the stand-in has %v (%v), want the runner of the one host", runners, err)
	}
	s.finish()
	if !dev.Answers(ctx, listener.Addr().String()) {
		t.Error("the stand-in that was not dev's own ended with it")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestDevRefuses makes starts that cannot succeed: each says why and where.
func TestDevRefuses(t *testing.T) {
	racepass.CoveredBy(t, "TestDevServesARunColdAndWarm")
	t.Parallel()
	s := startDev(t, "")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	other := filepath.Join(t.TempDir(), "state")
	broken := write(t, "controld.yaml", "sweeps:\n  due: 5\n")
	noStore := t.TempDir()
	if err := os.Mkdir(filepath.Join(noStore, "remuda.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		code int
		says []string
	}{
		"a store that cannot open": {[]string{"--state-dir", noStore}, 78, []string{noStore + "/remuda.db is not a file"}},
		"a state directory in use": {[]string{"--state-dir", s.options.StateDir}, 1, []string{"--state-dir " + s.options.StateDir, "another `controld dev` runs on it"}},
		"a taken port for gRPC":    {[]string{"--state-dir", other, "--grpc-addr", addr}, 1, []string{"--grpc-addr: ", addr, "address already in use"}},
		"a taken port for HTTP":    {[]string{"--state-dir", other, "--http-addr", addr}, 1, []string{"--http-addr: ", addr, "address already in use"}},
		"a taken port for GitHub":  {[]string{"--state-dir", other, "--github-addr", addr}, 1, []string{"--github-addr " + addr, "address already in use"}},
		// Also root cannot write there.
		"a read-only directory":     {[]string{"--state-dir", "/proc/sys"}, 1, []string{"--state-dir /proc/sys: not writable"}},
		"a directory not to be had": {[]string{"--state-dir", "/proc/remuda"}, 1, []string{"--state-dir /proc/remuda: make it"}},
		"a file as its directory":   {[]string{"--state-dir", broken}, 1, []string{"--state-dir " + broken, "not a directory"}},
		"hosts that never boot":     {[]string{"--state-dir", other, "--boot-time", "10m"}, 2, []string{"--boot-time 10m0s is not less than timeouts.creation (10m0s)"}},
		"a configuration for AWS":   {[]string{"--state-dir", other, "--config", awsExample}, 78, []string{awsExample + ":21:1: aws: is there", "controld serve"}},
		"a configuration not right": {[]string{"--state-dir", other, "--config", broken}, 78, []string{broken + ":2:8: sweeps.due: "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			free := []string{"dev", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--github-addr", "127.0.0.1:0"}
			cmd := exec.CommandContext(s.ctx, filepath.Join(s.options.Bin, "controld"), append(free, test.args...)...)
			out, _ := cmd.CombinedOutput() // the exit code says the rest
			if got := cmd.ProcessState.ExitCode(); got != test.code {
				t.Errorf("exit code %d, want %d", got, test.code)
			}
			for _, says := range test.says {
				if !strings.Contains(string(out), says) {
					t.Errorf("it does not say %q:\n%s", says, out)
				}
			}
			for _, dir := range []string{other, noStore} {
				if left, err := local.Processes(dir); err != nil || len(left) > 0 {
					t.Errorf("processes left: %v %v", left, err)
				}
			}
		})
	}
}

// TestDevStopsWhileACallWaits: a Provision for which there is no capacity is
// cut short, and a second signal cuts short even that.
func TestDevStopsWhileACallWaits(t *testing.T) {
	t.Parallel()
	s := startDev(t, "compute:\n  process:\n    capacity: {\"*\": 1}\n")
	s.provision("301")
	s.waitInVain("302")
	s.endBySignals(true)
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "signal: terminated") {
		t.Errorf("a second signal does not end controld at once, it came to its end: %v", err)
	}
	if len(s.processes("hosts")) == 0 {
		t.Error("controld ended its hosts before the second signal, so nothing was cut short")
	}

	s.start()
	s.waitInVain("303")
	s.endBySignals(false)
	if err := s.Stop(); err != nil { // it bounds its own end
		t.Errorf("a call that waits keeps controld from stopping: %v", err)
	}
	s.nothingRuns()
	s.start() // for finish
}

// waitInVain begins a Provision that finds no capacity.
func (s *stage) waitInVain(runID string) {
	s.t.Helper()
	fleet := s.Fleet
	go func() {
		_, _ = fleet.Provision(s.ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: runID, Timeout: durationpb.New(within)})
	}()
	for !strings.Contains(s.get("/metrics"), `operation="compute.launch",result="shortage"`) {
		time.Sleep(50 * time.Millisecond)
	}
}

// endBySignals sends a signal, and more if that is said, and waits for the end
// of controld. A second signal counts once the first was taken.
func (s *stage) endBySignals(more bool) {
	s.t.Helper()
	controld, err := os.FindProcess(s.PID())
	if err != nil {
		s.t.Fatal(err)
	}
	defer controld.Release()
	for next := syscall.SIGTERM; s.ctx.Err() == nil && controld.Signal(next) == nil; time.Sleep(20 * time.Millisecond) {
		if !more {
			next = 0 // which only asks whether it is there
		}
	}
}

func TestStandinIsOnePerDirectory(t *testing.T) {
	racepass.CoveredBy(t, "TestDevServesARunColdAndWarm")
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "github")
	program := filepath.Join(programsBesideEachOther(t), "controld")
	first, err := dev.StartStandin(t.Context(), program, "127.0.0.1:0", dir, dev.StandinTimes{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := first.End(); err != nil || first.Alive() {
			t.Errorf("the stand-in lives on: %v", err)
		}
	})
	again, err := dev.StartStandin(t.Context(), program, "127.0.0.1:0", dir, dev.StandinTimes{})
	if err != nil || again.StandinID != first.StandinID {
		t.Errorf("attached to %v (%v), want %v", again, err, first.StandinID)
	}
	if err := again.EndIfStarted(); err != nil || !first.Alive() {
		t.Errorf("who attaches ends the stand-in of others: %v", err)
	}
	if got := controld(t, "github-standin", "--addr", "127.0.0.1:0", "--state-dir", dir); got.code != 1 || !strings.Contains(got.stderr, "another GitHub stand-in runs on it") {
		t.Errorf("a second one on the directory: %+v", got)
	}
}
