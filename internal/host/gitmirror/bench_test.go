package gitmirror_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkFetchOfAJob is the fetch of actions/checkout with fetch-depth: 1: 20,000 files of 4 kB that do not compress; the last commit has changed
// one. The server is on the same machine, so that the network costs nothing. The files are written to the work tree after it, by both alike.
func BenchmarkFetchOfAJob(b *testing.B) {
	w := newWorld(b)
	work := filepath.Join(w.dir, "work")
	data := make([]byte, 4000)
	for i := range 20_000 {
		_, _ = w.random.Read(data) // it does not fail
		file := filepath.Join(work, fmt.Sprintf("d%d/f%d", i%200, i))
		check(b, os.MkdirAll(filepath.Dir(file), 0o755))
		check(b, os.WriteFile(file, data, 0o600))
	}
	w.commit("main")
	w.git(filepath.Join(w.dir, "acme/app.git"), "repack", "-a", "-d", "-q")
	for _, with := range []string{"without", "with"} {
		if with == "with" {
			w.mustFetch("main")
		}
		last := w.commit("main")
		b.Run(with, func(b *testing.B) {
			var kB int
			for b.Loop() {
				dir := b.TempDir()
				w.fetchOfJob(last, 1, dir)
				b.StopTimer()
				kB += w.kBOf(dir)
				b.StartTimer()
			}
			b.ReportMetric(float64(kB)/float64(b.N), "kB/op")
		})
	}
	b.Run("of the mirror", func(b *testing.B) {
		for b.Loop() {
			dir := b.TempDir()
			_, err := w.mirror("main").Fetch(b.Context(), nil, dir)
			check(b, err)
		}
	})
}
