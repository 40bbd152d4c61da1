package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/proc"
)

// noProcess is a process id that the kernel never gives (PID_MAX_LIMIT is 2^22).
const noProcess = "4194305"

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// pretend writes the files of a process below a directory that stands in for
// /proc.
func pretend(t *testing.T, dir, environ, stat string) {
	t.Helper()
	put(t, filepath.Join(dir, noProcess, "environ"), environ)
	put(t, filepath.Join(dir, noProcess, "stat"), stat)
}

// statFile has the state, the flags and the bounds of the environment.
func statFile(state, flags, envStart, envEnd string) string {
	return noProcess + " (it) is here) " + state + " 1 7 7 0 -1 " + flags + strings.Repeat(" 0", 40) + " " + envStart + " " + envEnd + " 0\n"
}

func TestSurvey(t *testing.T) {
	t.Parallel()
	h := &Host{o: Options{InstanceID: "i-1"}}
	mark := InstanceIDVariable + "=i-1\x00"
	sleeping := statFile("S", "4194304", "20", "30")
	between := statFile("S", "4194304", "0", "0")
	tests := map[string]struct {
		environ, stat string
		ours, unclear int
	}{
		"ours":                       {"A=b\x00" + mark, sleeping, 1, 0},
		"ours, and it comes first":   {mark + "A=b\x00", sleeping, 1, 0},
		"another host's":             {InstanceIDVariable + "=i-12\x00", sleeping, 0, 0},
		"without environment":        {"", statFile("S", "4194304", "20", "20"), 0, 0},
		"between two programs":       {"", between, 0, 1},
		"always another program":     {"", sleeping, 0, 1},
		"about to end":               {"", statFile("R", "4194564", "0", "0"), 0, 1},
		"ended and not waited for":   {"", statFile("Z", "4194564", "0", "0"), 0, 0},
		"a thread of the kernel":     {"", statFile("I", "69238880", "0", "0"), 0, 0},
		"gone while it is looked at": {"", "", 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h.proc = proc.FS(t.TempDir())
			pretend(t, string(h.proc), test.environ, test.stat)
			pids, unclear, err := h.scanMarked()
			if err != nil || len(pids) != test.ours || unclear != test.unclear {
				t.Errorf("ours are %v, unclear are %d, error %v; want %d and %d", pids, unclear, err, test.ours, test.unclear)
			}
		})
	}
}

// A process that is between two programs when all others are dead turns out to
// be the host's.
func TestKillAllWaitsForTheUnclear(t *testing.T) {
	t.Parallel()
	h := &Host{o: Options{InstanceID: "i-1"}, proc: proc.FS(t.TempDir())}
	between := statFile("S", "4194304", "0", "0")
	pretend(t, string(h.proc), "", between)
	killed := make(chan error)
	go func() { killed <- h.killAll(proc.KillLimit) }()
	for _, environ := range []string{"", InstanceIDVariable + "=i-1\x00"} {
		put(t, filepath.Join(string(h.proc), noProcess, "environ"), environ)
		select {
		case err := <-killed:
			t.Fatalf("all were said to be dead (%v), and one lives", err)
		case <-time.After(10 * proc.KillPause):
		}
	}
	if err := os.RemoveAll(string(h.proc) + "/" + noProcess); err != nil {
		t.Fatal(err)
	}
	if err := <-killed; err != nil {
		t.Error(err)
	}
}
