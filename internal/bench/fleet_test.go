package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// fleetAtMost bounds the memory of controld with 100,000 hosts, in MiB.
const fleetAtMost = 300

// BenchmarkFleet: controld starts on a file with so many hosts that wait and have reported, and not one of their machines is there. So its sweeps look
// at all of them at once: those of "silent" are kept, as they are a mass, and those of "ended" have waited for long enough and are ended. It reports the
// most memory that the process had, what it has in the end, and its processor time.
func BenchmarkFleet(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("silent/hosts=%d", n), func(b *testing.B) { runFleet(b, n, time.Hour) })
	}
	b.Run("ended/hosts=100000", func(b *testing.B) { runFleet(b, 100_000, -time.Minute) })
}

// watchFleet is how long the sweeps are watched at least: each comes to its end once, also on a busy machine.
const watchFleet = 30 * time.Second

func runFleet(b *testing.B, n int, waitFor time.Duration) {
	for range b.N {
		state := filepath.Join(b.TempDir(), "state")
		if err := os.Mkdir(state, 0o700); err != nil {
			b.Fatal(err)
		}
		path := filepath.Join(state, "remuda.db")
		fillFile(b, path, n, waitFor)
		s, began := startOn(b, state, ""), time.Now()
		time.Sleep(watchFleet)
		for waitFor < 0 && livingOf(b, path) > 0 {
			if time.Since(began) > 5*time.Minute {
				b.Fatalf("%d of %d hosts still live", livingOf(b, path), n)
			}
			time.Sleep(time.Second)
		}
		peak := float64(memoryKiB(b, s.PID(), "VmHWM:")) / 1024
		b.ReportMetric(peak, "peak-MiB")
		b.ReportMetric(float64(residentKiB(b, s.PID()))/1024, "after-MiB")
		b.ReportMetric(cpuTime(b, s.PID()).Seconds(), "cpu-s")
		if peak > fleetAtMost {
			b.Errorf("controld with %d hosts takes %.0f MiB, and may take %d", n, peak, fleetAtMost)
		}
	}
}

// livingOf counts the records that have not ended.
func livingOf(b *testing.B, path string) (n int) {
	b.Helper()
	file, err := db.Open(path, db.Options{Light: true})
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	err = file.Read(context.Background(), "count", func(c *db.Conn) error {
		var count int64
		err := c.Get("SELECT count(*) FROM instances WHERE state <> 'terminated'", nil, &count)
		n = int(count)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// fillFile makes a file with n hosts that wait for a time. Each reported most of a minute ago, so that it counts as quiet.
func fillFile(b *testing.B, path string, n int, waitFor time.Duration) {
	b.Helper()
	file, err := db.Open(path, db.Options{})
	if err != nil {
		b.Fatal(err)
	}
	store, now := sqlite.New(file), time.Now()
	inBatches(b, n, func(ctx context.Context, i int) error {
		r := record(i, now)
		r.Threshold, r.DueAt = now.Add(waitFor), now.Add(waitFor)
		report := lifecycle.Report{
			HostKey: r.HostKey, HeartbeatAt: now.Add(-50 * time.Second), BootID: "b1", AgentVersion: "v1", RunnerVersion: "2.336.0", Assignment: r.Assignment,
		}
		return errors.Join(store.CreateInstance(ctx, r), store.ForHost(r.HostKey).PutReport(ctx, report))
	})
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
}
