package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// startSystem builds the daemons and runs `controld dev` until the benchmark
// ends.
func startSystem(b *testing.B) *local.System {
	b.Helper()
	return startOn(b, filepath.Join(b.TempDir(), "state"))
}

// built: programs was called.
var built bool

// programs builds the daemons once for all benchmarks, and returns their directory.
var programs = sync.OnceValues(func() (string, error) {
	built = true
	bin, err := os.MkdirTemp("", "remuda-bench")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-trimpath", "-o", bin+string(filepath.Separator),
		"../../controld", "../../agentd", "../githubsim/cmd/standin-runner")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return bin, fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
})

// TestMain removes the programs and the histories.
func TestMain(m *testing.M) {
	code := m.Run()
	if built {
		bin, _ := programs()
		_ = os.RemoveAll(bin)
	}
	if histories.dir != "" {
		_ = os.RemoveAll(histories.dir)
	}
	os.Exit(code)
}

// startOn runs `controld dev` on a directory until the benchmark ends.
func startOn(b *testing.B, state string) *local.System {
	b.Helper()
	bin, err := programs()
	if err != nil {
		b.Fatal(err)
	}
	log, err := os.Create(filepath.Join(b.TempDir(), "controld.log"))
	if err != nil {
		b.Fatal(err)
	}
	s, err := local.Start(b.Context(), local.Options{Bin: bin, StateDir: state, Stderr: log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Stop(); err != nil {
			b.Error(err)
		}
		_ = log.Close() // it has no reader left
	})
	return s
}

// warmProvisions is how many make one iteration: percentiles want a sample.
const warmProvisions = 40

// BenchmarkWarmProvision: one host that a real agentd registers with the
// stand-in's runner, from call to response, at the default polling. An
// iteration is 40 of them, with their releases.
func BenchmarkWarmProvision(b *testing.B) {
	s := startSystem(b)
	var took []time.Duration
	cycle := func(run string) time.Duration {
		began := time.Now()
		got, err := s.Fleet.Provision(b.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: run})
		d := time.Since(began)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Fleet.Release(b.Context(), &remudav1.ReleaseRequest{Repository: repository, RunId: run, Wait: true}); err != nil {
			b.Fatal(err)
		}
		if run != "cold" && got.GetReusedCount() != 1 {
			b.Fatalf("run %s: %v", run, got)
		}
		return d
	}
	cycle("cold")
	b.ResetTimer()
	for i := range b.N * warmProvisions {
		// A pause of a length of its own, so that callers meet the agent's
		// polling at any point of it.
		time.Sleep(time.Duration(i*37%500) * time.Millisecond)
		took = append(took, cycle(fmt.Sprint(i)))
	}
	reportLatency(b, took)
}

// BenchmarkRelease: from the call of Release to the answer that the host is pooled: deregistered by its agent, and clean.
func BenchmarkRelease(b *testing.B) {
	s := startSystem(b)
	var took []time.Duration
	for i := range b.N*warmProvisions + 1 {
		run := fmt.Sprint(i)
		if _, err := s.Fleet.Provision(b.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: run}); err != nil {
			b.Fatal(err)
		}
		time.Sleep(time.Duration(i*37%500) * time.Millisecond)
		began := time.Now()
		if _, err := s.Fleet.Release(b.Context(), &remudav1.ReleaseRequest{Repository: repository, RunId: run, Wait: true}); err != nil {
			b.Fatal(err)
		}
		if i > 0 { // the first was launched
			took = append(took, time.Since(began))
		}
	}
	reportLatency(b, took)
}

// BenchmarkIdleAgent: what an agentd costs that waits for a run: its memory
// and its share of a core.
func BenchmarkIdleAgent(b *testing.B) {
	s := startSystem(b)
	got, err := s.Fleet.Provision(b.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: "1"})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Fleet.Release(b.Context(), &remudav1.ReleaseRequest{Repository: repository, RunId: "1", Wait: true}); err != nil {
		b.Fatal(err)
	}
	id := got.GetInstances()[0].GetInstanceId()
	if _, err := s.Fleet.HoldInstance(b.Context(), &remudav1.HoldInstanceRequest{
		InstanceId: id, Duration: durationpb.New(time.Hour), Reason: "measuring it",
	}); err != nil {
		b.Fatal(err)
	}
	pid := agentd(b, s, id)
	const watched = 20 * time.Second
	for range b.N {
		before := cpuTime(b, pid)
		time.Sleep(watched)
		used := cpuTime(b, pid) - before
		b.ReportMetric(100*used.Seconds()/watched.Seconds(), "%core")
		b.ReportMetric(float64(residentKiB(b, pid))/1024, "MiB")
	}
}

// agentd is the process id of a host's agent.
func agentd(b *testing.B, s *local.System, host string) int {
	b.Helper()
	processes, err := local.Processes(filepath.Join(s.StateDir(), "hosts", host))
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range processes {
		if program, _, _ := strings.Cut(p.Command, " "); filepath.Base(program) == "agentd" {
			return p.PID
		}
	}
	b.Fatalf("no agentd among %v", processes)
	return 0
}

// cpuTime is what a process has used, from /proc/PID/stat in ticks of 10 ms.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	var ticks int
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func residentKiB(b *testing.B, pid int) int { return memoryKiB(b, pid, "VmRSS:") }

// memoryKiB is a line of /proc/PID/status: VmRSS: is what the process has in memory now, VmHWM: the most that it had.
func memoryKiB(b *testing.B, pid int, line string) int {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for text := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(text, line); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("no %s in /proc/PID/status", line)
	return 0
}
