//go:build testhost

package cachestore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/tree"
)

// BenchmarkCache has the times of docs/performance.md: the first commit of a cache, its attachment, and the commit of a run that changes a hundredth.
// It needs root and as much disk; the sizes are in the names: go test -tags testhost -run '^$' -bench Cache/1GB -benchtime 1x.
func BenchmarkCache(b *testing.B) {
	for _, size := range []struct {
		name        string
		files, each int
	}{
		{"1GB", 1000, 1 << 20}, {"6GB", 6000, 1 << 20}, {"20GB", 20000, 1 << 20}, {"small", 200_000, 4 << 10},
	} {
		b.Run(size.name, func(b *testing.B) {
			for range b.N {
				measureCache(b, size.files, size.each)
			}
		})
	}
}

func measureCache(b *testing.B, files, each int) {
	b.StopTimer()
	home := filepath.Join(b.TempDir(), "home")
	dir := os.Getenv("REMUDA_BENCH_DIR") // a real disk; the default may be in memory
	if dir == "" {
		dir = b.TempDir()
	}
	dir, err := os.MkdirTemp(dir, "caches")
	check(b, err)
	defer os.RemoveAll(dir)
	owner := tree.Owner{UID: os.Geteuid(), GID: os.Getegid()}
	s, err := New(Options{Dir: dir, Owner: owner, BootID: "boot", Mechanism: Overlay{}})
	check(b, err)
	c := Cache{Key: "00112233445566ff", Name: "go", Size: 1 << 40, Targets: []string{filepath.Join(home, "cache")}}
	attach := func(n int64) time.Duration {
		check(b, os.MkdirAll(home, 0o755))
		began := time.Now()
		_, err := s.Attach(b.Context(), n, home, []Cache{c}, nil)
		check(b, err)
		return time.Since(began)
	}
	commit := func(n int64) time.Duration {
		began := time.Now()
		outcomes, err := s.Commit(b.Context(), n, []string{"go"})
		check(b, err)
		if !outcomes[0].Committed {
			b.Fatal(outcomes[0].Reason)
		}
		return time.Since(began)
	}
	write := func(from, to int) {
		content := make([]byte, each)
		random := rand.NewChaCha8([32]byte{})
		for n := from; n < to; n++ {
			_, _ = random.Read(content)
			path := filepath.Join(c.Targets[0], fmt.Sprintf("%03d/%07d", n%256, n))
			check(b, os.MkdirAll(filepath.Dir(path), 0o755))
			check(b, os.WriteFile(path, content, 0o644))
		}
	}
	attach(1)
	write(0, files)
	b.StartTimer()
	b.ReportMetric(commit(2).Seconds(), "first-commit-s")
	b.ReportMetric(attach(3).Seconds()*1e3, "attach-ms")
	b.StopTimer()
	write(files, files+files/100)
	b.StartTimer()
	b.ReportMetric(commit(4).Seconds(), "next-commit-s")
	check(b, s.Discard())
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
