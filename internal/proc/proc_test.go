package proc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/proc"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// with is a directory like /proc with one file of process 7.
func with(t testing.TB, name, text string) proc.FS {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "7", name), text)
	return proc.FS(dir)
}

// rest is what stands in stat behind the start time, with the bounds of the environment as given.
func rest(envStart, envEnd string) string {
	return " 2940928 233 18446744073709551615 1 2 3 4 5 0 0 0 0 0 0 0 17 1 0 0 0 0 0 6 7 8 9 10 " + envStart + " " + envEnd + " 0\n"
}

func TestStat(t *testing.T) {
	t.Parallel()
	id := proc.ID{PID: 7, Start: 1234}
	tests := map[string]struct {
		text         string
		want         proc.Stat
		dead, exited bool
	}{
		"asleep": {
			"7 (sh) S 1 7 8 0 -1 4194560 164 0 0 0 0 0 0 0 20 0 1 0 1234",
			proc.Stat{ID: id, Name: "sh", State: "S", Parent: 1, Session: 8, Threads: 1}, false, false,
		},
		"an odd name": {
			"7 (x) S 1 (y)) S 42 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1234",
			proc.Stat{ID: id, Name: "x) S 1 (y)", State: "S", Parent: 42, Session: 1, Threads: 1}, false, false,
		},
		"a name like a dead one's": {
			"7 (a) Z 1 1) S 42 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 1234",
			proc.Stat{ID: id, Name: "a) Z 1 1", State: "S", Parent: 42, Session: 1, Threads: 1}, false, false,
		},
		"without a name": {
			"7 () S 42 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1234",
			proc.Stat{ID: id, State: "S", Parent: 42, Session: 1, Threads: 1}, false, false,
		},
		"a thread of the kernel": {
			"7 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 1234",
			proc.Stat{ID: id, Name: "kworker/0:1", State: "I", Parent: 2, Threads: 1, Kernel: true}, false, false,
		},
		"a zombie": {
			"7 (x) Z 42 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 1234",
			proc.Stat{ID: id, Name: "x", State: "Z", Parent: 42, Session: 1, Threads: 1}, true, true,
		},
		"dead": {
			"7 (x) X 42 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 0 0 1234",
			proc.Stat{ID: id, Name: "x", State: "X", Parent: 42, Session: 1}, true, true,
		},
		"a zombie whose other threads live": {
			"7 (threads) Z 42 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 2 0 1234",
			proc.Stat{ID: id, Name: "threads", State: "Z", Parent: 42, Session: 1, Threads: 2}, true, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := with(t, "stat", test.text+rest("11", "12")).Stat(7)
			check(t, err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("stat (-want +got):\n%s", diff)
			}
			if got.Dead() != test.dead || got.Exited() != test.exited {
				t.Errorf("dead %t, exited %t", got.Dead(), got.Exited())
			}
		})
	}
	if got := id.SinceBoot(); got != 12340*time.Millisecond {
		t.Errorf("started %s after the boot", got)
	}
}

func TestMalformedStat(t *testing.T) {
	t.Parallel()
	good := "7 (sh) S 1 7 8 0 -1 4194560 164 0 0 0 0 0 0 0 20 0 1 0 1234" + rest("11", "12")
	for _, text := range []string{
		"", "7 (sh", "7 (sh) S 1 7 7", strings.Replace(good, " 8 0 -1 ", " x 0 -1 ", 1), strings.Replace(good, "S 1 7", "S x 7", 1),
		strings.Replace(good, "4194560", "flags", 1), strings.Replace(good, " 1234 ", " soon ", 1),
		strings.Replace(good, "20 0 1 0", "20 0 x 0", 1),
	} {
		if got, err := with(t, "stat", text).Stat(7); err == nil || proc.Gone(err) {
			t.Errorf("%q: got %+v, error %v", text, got, err)
		}
	}
	if _, err := proc.FS(t.TempDir()).Stat(7); !proc.Gone(err) {
		t.Errorf("a process that is gone: error %v", err)
	}
}

func FuzzStat(f *testing.F) {
	f.Add("S 42 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1234" + rest("1", "2"))
	f.Fuzz(func(t *testing.T, text string) {
		text = "7 (x) " + text
		if _, err := with(t, "stat", text).Stat(7); err == nil && len(strings.Fields(text)) < 20 {
			t.Errorf("%q was read", text)
		}
	})
}

func TestUIDs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want [4]int
		bad  bool
	}{
		"all the same":             {"Name:\tx\nTgid:\t7\nUid:\t1\t1\t1\t1\n", [4]int{1, 1, 1, 1}, false},
		"all different":            {"Name:\tx\nTgid:\t7\nUid:\t1001\t10010\t0\t3\nThreads:\t1\n", [4]int{1001, 10010, 0, 3}, false},
		"a name that is a line":    {"Name:\tUid: 0 0 0 0\\nUid:\nTgid:\t7\nUid:\t1001\t0\t0\t0\n", [4]int{1001, 0, 0, 0}, false},
		"nothing":                  {"", [4]int{}, true},
		"no number":                {"Tgid:\t7\nUid:\tx\n", [4]int{}, true},
		"a thread or another task": {"Tgid:\t8\nUid:\t1\t1\t1\t1\n", [4]int{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := with(t, "status", test.text).UIDs(7)
			if (err != nil) != test.bad || got != test.want || proc.Gone(err) {
				t.Errorf("%v, error %v", got, err)
			}
		})
	}
	if _, err := proc.FS(t.TempDir()).UIDs(7); !proc.Gone(err) {
		t.Errorf("a process that is gone: error %v", err)
	}
}

func TestCgroup(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0::/system.slice/ssh.service\n": "system.slice/ssh.service",
		"12:pids:/evil.service\n1:name=systemd:/evil.service\n0::/system.slice/a.service": "system.slice/a.service",
		"0::/system.slice/a.service (deleted)\n":                                          "system.slice/a.service (deleted)",
		"0::/\n":                                                                          "", "": "", "10::/a.service\n": "",
	} {
		got, err := with(t, "cgroup", text).Cgroup(7)
		if err != nil || got != want {
			t.Errorf("%q: %q, error %v, want %q", text, got, err, want)
		}
	}
}

func TestLineage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	born := func(pid, parent int) {
		put(t, filepath.Join(dir, strconv.Itoa(pid), "stat"),
			fmt.Sprintf("%d (x) S %d 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500%s", pid, parent, rest("1", "2")))
	}
	born(1, 0)
	born(7, 1)
	born(8, 7)
	born(9, 4) // its parent has ended
	for pid, want := range map[int][]int{1: {1}, 7: {7, 1}, 8: {8, 7, 1}, 9: {9}} {
		line, err := proc.FS(dir).Lineage(pid)
		check(t, err)
		var got []int
		for _, p := range line {
			got = append(got, p.PID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("lineage of %d (-want +got):\n%s", pid, diff)
		}
	}
	if _, err := proc.FS(dir).Lineage(4); !proc.Gone(err) {
		t.Errorf("a process that is gone: error %v", err)
	}
}

func TestSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(dir, "7", "fd"), 0o755))
	for name, target := range map[string]string{"0": "socket:[5]", "1": "/dev/null", "2": "socket:[6]", "3": "pipe:[7]", "4": "socket:[x]"} {
		check(t, os.Symlink(target, filepath.Join(dir, "7", "fd", name)))
	}
	got, err := proc.FS(dir).Sockets(7)
	check(t, err)
	if diff := cmp.Diff(map[uint64]bool{5: true, 6: true}, got); diff != "" {
		t.Errorf("sockets (-want +got):\n%s", diff)
	}
}

// The kernel itself says of this process what it is.
func TestThisProcess(t *testing.T) {
	t.Parallel()
	pid := os.Getpid()
	s, err := proc.Default.Stat(pid)
	check(t, err)
	if s.Parent != os.Getppid() || s.Kernel || s.Exited() || !proc.Default.Alive(s.ID) || proc.Default.Alive(proc.ID{PID: pid, Start: s.Start + 1}) {
		t.Errorf("%+v", s)
	}
	uids, err := proc.Default.UIDs(pid)
	check(t, err)
	if uids[0] != os.Getuid() || uids[1] != os.Geteuid() {
		t.Errorf("uids %v", uids)
	}
	if got := proc.Default.Program(pid); got != filepath.Base(os.Args[0]) {
		t.Errorf("program %q", got)
	}
	pids, err := proc.Default.PIDs()
	check(t, err)
	if !strings.Contains(fmt.Sprint(pids), strconv.Itoa(pid)) {
		t.Errorf("%d is not among %v", pid, pids)
	}
	child := exec.Command("sleep", "1000")
	check(t, child.Start())
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	children, err := proc.Default.Children(pid)
	check(t, err)
	if !strings.Contains(fmt.Sprint(children), strconv.Itoa(child.Process.Pid)) {
		t.Errorf("%d is not among %v", child.Process.Pid, children)
	}
	if got, err := proc.Default.Children(4194305); err != nil || got != nil { // PID_MAX_LIMIT is 2^22
		t.Errorf("children of a process that is gone: %v, error %v", got, err)
	}
	if got := proc.Default.Program(4194305); got != "" {
		t.Errorf("program of a process that is gone: %q", got)
	}
}

func TestEnviron(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  []string
		want string
	}{
		"with it":                   {[]string{"A=b", "HOST=i-1", "HOST2=i-2"}, "i-1"},
		"without it":                {[]string{"A=b", "HOST2=i-2"}, ""},
		"without anything, for all": {[]string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sleep", "1000")
			cmd.Env = test.env
			check(t, cmd.Start())
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			environ, known := proc.Default.Environ(cmd.Process.Pid)
			for !known { // it is about to become sleep
				environ, known = proc.Default.Environ(cmd.Process.Pid)
			}
			if got := proc.Variable(environ, "HOST"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got, known := proc.Default.Environ(2); len(got) > 0 || !known { // kthreadd, or in a container none
		t.Errorf("of a thread of the kernel: %q, known: %t", got, known)
	}
}

func TestEnvironBounds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stat  string
		known bool
	}{
		"started without":      {"7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1" + rest("20", "20"), true},
		"between two programs": {"7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1" + rest("0", "0"), false},
		"in another by now":    {"7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1" + rest("20", "30"), false},
		"a zombie":             {"7 (x) Z 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1" + rest("0", "0"), true},
		"malformed":            {"7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1" + rest("11", "high"), true},
		"cut short":            {strings.TrimSuffix("7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1"+rest("0", "0"), " 0 0 0\n"), true},
		"gone":                 {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := with(t, "stat", test.stat)
			put(t, filepath.Join(string(p), "7", "environ"), "")
			if environ, known := p.Environ(7); len(environ) > 0 || known != test.known {
				t.Errorf("%q, known: %t", environ, known)
			}
		})
	}
}

func BenchmarkStat(b *testing.B) {
	for b.Loop() {
		if _, err := proc.Default.Stat(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}
