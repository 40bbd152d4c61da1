package jobs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// jobPool is the pool of the tests, at whose jobs' side the hosts of runs do
// not count.
const jobPool = `pools:
  small-jobs:
    jobs:
      labels: [remuda-small]
      maximum: %d
      repositories: ["acme/*"]
`

const (
	onPool = "remuda-small"
	onRun  = `"${{ github.run_id }}"`
)

// workflow is one job for each n below count, on a runner with the labels.
func workflow(count int, labels, step string) string {
	numbers := make([]string, count)
	for n := range numbers {
		numbers[n] = fmt.Sprint(n)
	}
	return "on: push\njobs:\n  work:\n    runs-on: [" + labels + "]\n    strategy:\n      fail-fast: false\n      matrix:\n        n: [" +
		strings.Join(numbers, ", ") + "]\n    steps:\n      - run: " + step + "\n"
}

// gates hold up the steps of jobs, each at its own.
type gates struct {
	*stage
	dir string
}

func (s *stage) gates(count int) gates {
	s.Helper()
	g := gates{stage: s, dir: s.TempDir()}
	for n := range count {
		if err := syscall.Mkfifo(g.path(n), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	return g
}

func (g gates) path(n any) string { return filepath.Join(g.dir, fmt.Sprint(n)) }

// step waits at the gate of its job without being looked at: its open returns
// once the other end is opened.
func (g gates) step() string { return `": < ` + g.path("${{ matrix.n }}") + `"` }

// open lets a job go on as soon as it stands at its gate.
func (g gates) open(n int) {
	g.Helper()
	g.eventually(func() string {
		gate, err := os.OpenFile(g.path(n), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) {
			return fmt.Sprintf("no job is at gate %d", n)
		}
		if err != nil {
			g.Fatal(err)
		}
		if err := gate.Close(); err != nil {
			g.Fatal(err)
		}
		return ""
	})
}
