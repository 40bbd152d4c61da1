package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// nobody is a process id that the kernel gives to none (PID_MAX_LIMIT is 2^22).
const nobody = "4194305"

// pretend writes the files of a process below a directory that stands in for
// /proc.
func pretend(t *testing.T, proc, environ, cmdline, stat string) {
	t.Helper()
	for name, text := range map[string]string{"environ": environ, "cmdline": cmdline, "stat": stat} {
		put(t, filepath.Join(proc, nobody, name), text)
	}
}

const sleeping = nobody + " (it) is here) S 1 7 7 0 -1 4194304 1 2 3\n"

func TestSurvey(t *testing.T) {
	t.Parallel()
	h := &Host{o: Options{InstanceID: "i-1"}}
	mark := InstanceIDVariable + "=i-1\x00"
	tests := map[string]struct {
		environ, cmdline, stat string
		ours, unclear          int
	}{
		"ours":                       {"A=b\x00" + mark, "sleep\x00", sleeping, 1, 0},
		"another host's":             {InstanceIDVariable + "=i-12\x00", "sleep\x00", sleeping, 0, 0},
		"without environment":        {"", "sleep\x00", sleeping, 0, 0},
		"without arguments":          {"A=b\x00", "", sleeping, 0, 0},
		"between two programs":       {"", "", sleeping, 0, 1},
		"about to end":               {"", "", nobody + " (sleep) R 1 7 7 0 -1 4194564 1 2 3\n", 0, 1},
		"ended and not waited for":   {"", "", nobody + " (sleep) Z 1 7 7 0 -1 4194564 1 2 3\n", 0, 0},
		"a thread of the kernel":     {"", "", nobody + " (kworker/0:1) I 2 0 0 0 -1 69238880 1 2 3\n", 0, 0},
		"gone while it is looked at": {"", "", "", 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h.proc = t.TempDir()
			pretend(t, h.proc, test.environ, test.cmdline, test.stat)
			pids, unclear, err := h.survey()
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
	h := &Host{o: Options{InstanceID: "i-1"}, proc: t.TempDir()}
	pretend(t, h.proc, "", "", sleeping)
	killed := make(chan error)
	go func() { killed <- h.killAll() }()
	for _, environ := range []string{"", InstanceIDVariable + "=i-1\x00"} {
		pretend(t, h.proc, environ, "", sleeping)
		select {
		case err := <-killed:
			t.Fatalf("all were said to be dead (%v), and one lives", err)
		case <-time.After(10 * killPause):
		}
	}
	if err := os.RemoveAll(h.proc + "/" + nobody); err != nil {
		t.Fatal(err)
	}
	if err := <-killed; err != nil {
		t.Error(err)
	}
}
