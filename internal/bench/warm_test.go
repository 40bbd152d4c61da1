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

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// startSystem builds the daemons and runs `controld dev` until the benchmark
// ends.
func startSystem(b *testing.B) *local.System {
	b.Helper()
	return startOn(b, filepath.Join(b.TempDir(), "state"), "")
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

// startOn runs `controld dev` on a directory until the benchmark ends. config is added to its configuration.
func startOn(b *testing.B, state, config string) *local.System {
	b.Helper()
	bin, err := programs()
	if err != nil {
		b.Fatal(err)
	}
	options := local.Options{Bin: bin, StateDir: state}
	log, err := os.Create(filepath.Join(b.TempDir(), "controld.log"))
	if err != nil {
		b.Fatal(err)
	}
	options.Stderr = log
	if config != "" {
		options.Config = filepath.Join(b.TempDir(), "controld.yaml")
		if err := os.WriteFile(options.Config, []byte(config), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	s, err := local.Start(b.Context(), options)
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

// BenchmarkWarmProvision: one host of a real agentd with the stand-in's runner, from call to response, at the default polling. A clean host registers once it
// is claimed, and a hot one has done that before. An iteration is 40 claims, with their releases.
func BenchmarkWarmProvision(b *testing.B) {
	for _, standby := range []string{"clean", "listening"} {
		b.Run("standby="+standby, func(b *testing.B) {
			s := startOn(b, filepath.Join(b.TempDir(), "state"), "pools: {default: {standby: "+standby+"}}\n")
			b.ResetTimer()
			var took []time.Duration
			host := serveRun(b, s, "cold").GetInstances()[0].GetInstanceId()
			for i := range b.N * warmProvisions {
				if standby == "listening" {
					untilHot(b, s, host)
				}
				// A pause of a length of its own, so that callers meet the agent's polling at any point of it.
				time.Sleep(time.Duration(i*37%500) * time.Millisecond)
				began := time.Now()
				got := provisionRun(b, s, fmt.Sprint(i))
				took = append(took, time.Since(began))
				if got.GetReusedCount() != 1 {
					b.Fatalf("run %d: %v", i, got)
				}
				releaseRun(b, s, fmt.Sprint(i))
			}
			reportLatency(b, took)
		})
	}
}

func serveRun(b *testing.B, s *local.System, run string) *remudav1.ProvisionResponse {
	b.Helper()
	got := provisionRun(b, s, run)
	releaseRun(b, s, run)
	return got
}

func provisionRun(b *testing.B, s *local.System, run string) *remudav1.ProvisionResponse {
	b.Helper()
	got, err := s.Fleet.Provision(b.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: run})
	if err != nil {
		b.Fatal(err)
	}
	return got
}

func releaseRun(b *testing.B, s *local.System, run string) {
	b.Helper()
	if _, err := s.Fleet.Release(b.Context(), &remudav1.ReleaseRequest{Repository: repository, RunId: run, Wait: true}); err != nil {
		b.Fatal(err)
	}
}

// untilHot waits until the runner of a host listens.
func untilHot(b *testing.B, s *local.System, host string) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		got, err := s.Fleet.GetInstance(b.Context(), &remudav1.GetInstanceRequest{InstanceId: host})
		if err != nil {
			b.Fatal(err)
		}
		if got.GetInstance().GetHot() {
			return
		}
	}
	b.Fatalf("host %s is not hot after a minute", host)
}

// BenchmarkRelease: from the call of Release to the answer that the host is pooled: deregistered by its agent, and clean.
func BenchmarkRelease(b *testing.B) {
	s := startSystem(b)
	serveRun(b, s, "cold")
	var took []time.Duration
	for i := range b.N * warmProvisions {
		run := fmt.Sprint(i)
		provisionRun(b, s, run)
		time.Sleep(time.Duration(i*37%500) * time.Millisecond)
		began := time.Now()
		releaseRun(b, s, run)
		took = append(took, time.Since(began))
	}
	reportLatency(b, took)
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
