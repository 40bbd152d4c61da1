//go:build soak

package soak_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	flatHosts = 200 // real agents, each a process with a runner that listens
	flatRuns  = 20  // that have them
	// sampleEvery is how often everything is measured, and turnEvery how often one run ends and another gets its hosts, with a job on one of them.
	sampleEvery = 10 * time.Second
	turnEvery   = 20 * time.Second
	// warmUp is left out of the slopes, or a third of a shorter test: caches fill, such as the answers of GitHub, which are kept for 15 minutes.
	warmUp = 20 * time.Minute
	// judgedFrom is how long a test must be for its slopes to count. In ten minutes the noise of one collection is some MiB an hour.
	judgedFrom = 30 * time.Minute
)

// TestFlat holds the embedded default with 200 hosts for an hour, with some runs a minute, and looks whether controld grows.
func TestFlat(t *testing.T) {
	lasts := minutes(t, 60)
	ctx, cancel := context.WithTimeout(t.Context(), lasts+30*time.Minute)
	defer cancel()
	f := &flat{TB: t, ctx: ctx, hosts: flatHosts, dir: filepath.Join(t.TempDir(), "state")}
	if text := os.Getenv("SOAK_HOSTS"); text != "" {
		n, err := strconv.Atoi(text)
		check(t, err)
		f.hosts = n
	}
	f.start()
	began := time.Now()
	for run := range flatRuns {
		f.provision(run)
	}
	t.Logf("%d hosts after %s", f.hosts, time.Since(began).Round(time.Second))
	f.watch(lasts)
	f.judge(lasts)
}

// flat is a system that is watched.
type flat struct {
	testing.TB
	ctx     context.Context
	hosts   int
	dir     string
	system  *local.System
	log     string
	turns   int
	samples []sample
}

// sample is what controld takes at a moment.
type sample struct {
	at     time.Duration
	turns  int
	rows   int64
	logged int64 // bytes of controld's log
	values [len(measures)]float64
}

// measure is one thing that may grow.
type measure struct {
	name, unit string
	// an hour may bring so much of the mean, which is noise, or so much absolutely.
	share, much float64
}

const (
	memory = iota
	heap
	descriptors
	goroutines
	wal
	perRow
	agents
)

var measures = [...]measure{
	memory:      {"resident memory of controld", " MiB", 0.10, 8},
	heap:        {"heap that the last collection left", " MiB", 0.10, 4},
	descriptors: {"descriptors of controld", "", 0.05, 5},
	goroutines:  {"goroutines of controld", "", 0.05, 5},
	wal:         {"the database's log", " MiB", 0.10, 1},
	perRow:      {"database for each row in it", " bytes", 0.10, 100},
	agents:      {"resident memory of the agents, mean", " MiB", 0.20, 5},
}

func (f *flat) start() {
	f.Helper()
	f.log = filepath.Join(f.TempDir(), "controld.log")
	log, err := os.Create(f.log)
	check(f.TB, err)
	config := filepath.Join(f.TempDir(), "controld.yaml")
	check(f.TB, os.WriteFile(config, []byte("timeouts: {idle: 24h}\nhttp: {addr: \"127.0.0.1:0\"}\n"), 0o600))
	f.system, err = local.Start(f.ctx, local.Options{Bin: bin(f.TB), StateDir: f.dir, Config: config, Stderr: log})
	check(f.TB, err)
	f.Cleanup(func() {
		if err := f.system.Stop(); err != nil { // it ends its hosts within 5 s or says that it could not: a busy machine has no time for so many
			f.Log(err)
		}
		_ = log.Close() // it was written by controld
		endProcesses(f.TB, f.dir)
	})
}

func (f *flat) provision(run int) {
	f.Helper()
	id := fmt.Sprint(1000 + run)
	got, err := f.system.Fleet.Provision(f.ctx, &remudav1.ProvisionRequest{
		Repository: repository, RunId: id, RequestId: id, InstanceCount: proto.Int32(int32(f.hosts / flatRuns)), Timeout: durationpb.New(10 * time.Minute),
	})
	if err != nil || len(got.GetInstances()) != f.hosts/flatRuns {
		f.Fatalf("run %s got %d hosts: %v", id, len(got.GetInstances()), err)
	}
}

// turn has the oldest run end, and another one take its hosts.
func (f *flat) turn() {
	f.Helper()
	workflow := "on: push\njobs:\n  work:\n    runs-on: \"${{ github.run_id }}\"\n    steps:\n      - run: echo done\n"
	id := fmt.Sprint(1000 + f.turns)
	_, err := f.system.GitHub.StartRun(f.ctx, repository, id, workflow)
	check(f.TB, err)
	if run, err := f.system.GitHub.WaitRun(f.ctx, id, nil); err != nil || run.Conclusion != "success" {
		f.Fatalf("the job of run %s came out as %q (%v)", id, run.Conclusion, err)
	}
	_, err = f.system.Fleet.Release(f.ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: id, Wait: true})
	check(f.TB, err)
	f.provision(f.turns + flatRuns)
	f.turns++
}

func (f *flat) watch(lasts time.Duration) {
	f.Helper()
	file, err := db.Open(filepath.Join(f.dir, "remuda.db"), db.Options{ReadOnly: true})
	check(f.TB, err)
	defer file.Close()
	began := time.Now()
	samples, turns := time.NewTicker(sampleEvery), time.NewTicker(turnEvery)
	defer samples.Stop()
	defer turns.Stop()
	for time.Since(began) < lasts {
		select {
		case <-f.ctx.Done():
			f.Fatal(context.Cause(f.ctx))
		case <-turns.C:
			f.turn()
		case <-samples.C:
			f.samples = append(f.samples, f.measure(time.Since(began), file))
		}
	}
}

const mib = 1 << 20

func (f *flat) measure(at time.Duration, file *db.DB) (s sample) {
	f.Helper()
	s.at, s.turns, s.rows, s.logged = at, f.turns, rows(f.TB, file), size(f.TB, f.log)
	p, err := procfs.NewProc(f.system.PID())
	check(f.TB, err)
	stat, err := p.Stat()
	check(f.TB, err)
	open, err := p.FileDescriptorsLen()
	check(f.TB, err)
	s.values[memory], s.values[descriptors] = float64(stat.ResidentMemory())/mib, float64(open)
	metrics := f.metrics()
	s.values[heap], s.values[goroutines] = metrics["go_gc_heap_live_bytes"]/mib, metrics["go_goroutines"]
	path := filepath.Join(f.dir, "remuda.db")
	s.values[wal] = float64(size(f.TB, path+"-wal")) / mib
	s.values[perRow] = float64(size(f.TB, path)+size(f.TB, path+"-wal")) / float64(s.rows)
	s.values[agents] = f.agentMemory()
	return s
}

func size(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	check(t, err)
	return info.Size()
}

// rows are all that the database has. Events are kept for a day, and requests longer, so an hour only adds.
func rows(t testing.TB, file *db.DB) (all int64) {
	t.Helper()
	err := file.Read(t.Context(), "count rows", func(c *db.Conn) error {
		all = 0
		for _, table := range []string{"instances", "reports", "requests", "jobs", "events", "guards"} {
			var n int64
			if err := c.Get("SELECT count(*) FROM "+table, nil, &n); err != nil {
				return err
			}
			all += n
		}
		return nil
	})
	check(t, err)
	return all
}

func (f *flat) metrics() map[string]float64 {
	f.Helper()
	response, err := http.Get("http://" + f.system.HTTPAddr + "/metrics")
	check(f.TB, err)
	defer response.Body.Close()
	return parseMetrics(response.Body)
}

// agentMemory is the mean of what the agents of all hosts take, in MiB.
func (f *flat) agentMemory() float64 {
	f.Helper()
	all, err := local.Processes(filepath.Join(f.dir, "hosts"))
	check(f.TB, err)
	total, n := 0, 0
	for _, process := range all {
		if !strings.HasPrefix(process.Command, filepath.Join(bin(f.TB), "agentd")+" ") {
			continue
		}
		if p, err := procfs.NewProc(process.PID); err == nil { // else it has just ended
			if stat, err := p.Stat(); err == nil {
				total, n = total+stat.ResidentMemory(), n+1
			}
		}
	}
	return float64(total) / mib / float64(max(n, 1))
}

// judged are the samples after the time in which everything finds its size.
func (f *flat) judged() []sample {
	from := min(warmUp, f.samples[len(f.samples)-1].at/3)
	return f.samples[slices.IndexFunc(f.samples, func(s sample) bool { return s.at >= from }):]
}

// slope is that of the line that is nearest to the samples by least squares, for an hour, and mean the mean of the samples.
func (f *flat) slope(of int) (perHour, mean float64) {
	var n, sumX, sumY, sumXX, sumXY float64
	for _, s := range f.judged() {
		x, y := s.at.Hours(), s.values[of]
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	return (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX), sumY / n
}

// judge fails for what grows, and prints the table.
func (f *flat) judge(lasts time.Duration) {
	f.Helper()
	list := [][2]string{
		{"hosts, time", fmt.Sprintf("%d, %s", f.hosts, lasts)},
		{"runs that came and went", fmt.Sprint(f.turns)},
		{"samples", fmt.Sprint(len(f.samples))},
	}
	first, last := f.judged()[0], f.samples[len(f.samples)-1]
	if turns := last.turns - first.turns; turns > 0 {
		list = append(list,
			[2]string{"rows that a run adds; events go after a day", fmt.Sprintf("%.0f", float64(last.rows-first.rows)/float64(turns))},
			[2]string{"controld's log for each run", fmt.Sprintf("%.1f KiB", float64(last.logged-first.logged)/1024/float64(turns))})
	}
	for i, m := range measures {
		slope, mean := f.slope(i)
		list = append(list, [2]string{m.name, fmt.Sprintf("%.1f%s, %+.2f an hour", mean, m.unit, slope)})
		if most := max(m.much, m.share*mean); slope > most && lasts >= judgedFrom {
			f.Errorf("%s: %+.2f%s an hour, want at most %.2f", m.name, slope, m.unit, most)
		}
	}
	report(f.TB, list)
}
