package process

import (
	"os/exec"
	"strings"
	"testing"
)

// Fields 10 to 51 of stat, of a process that began at 123456.
const rest = "164 0 0 0 0 0 0 0 20 0 1 0 123456 2940928 233 18446744073709551615 1 2 3 4 5 0 0 0 0 0 0 0 17 1 0 0 0 0 0 6 7 8 9 10 11 12"

func TestParseStat(t *testing.T) {
	want := proc{procID: procID{pid: 7, start: 123456}, state: 'S', session: 7, envStart: 11, envEnd: 12}
	for _, command := range []string{"sh", "a b", "a) Z 9 (", ")", ""} {
		got, err := parseStat(7, "7 ("+command+") S 1 7 7 0 -1 4194560 "+rest+" 0")
		if err != nil || got != want {
			t.Errorf("command %q: got %+v, %v", command, got, err)
		}
	}
	thread, err := parseStat(7, "7 (kworker/0:1) I 2 0 0 0 -1 69238880 "+rest+" 0")
	if err != nil || !thread.kernel {
		t.Errorf("thread of the kernel: got %+v, %v", thread, err)
	}
	good := "7 (sh) S 1 7 8 0 -1 4194560 " + rest
	for _, bad := range []string{
		"", "7 (sh", "7 (sh) S 1 7 7", strings.TrimSuffix(good, " 12"), strings.Replace(good, " 8 0 -1 ", " x 0 -1 ", 1),
		strings.Replace(good, "4194560", "flags", 1), strings.Replace(good, "123456", "soon", 1), strings.Replace(good, "11 12", "11 high", 1),
	} {
		if got, err := parseStat(7, bad); err == nil {
			t.Errorf("stat %q: got %+v and no error", bad, got)
		}
	}
}

func TestEnvironment(t *testing.T) {
	for name, test := range map[string]struct {
		env  []string
		want string
	}{
		"with it":                   {[]string{"A=b", "HOST=i-1", "HOST2=i-2"}, "i-1"},
		"without it":                {[]string{"A=b", "HOST2=i-2"}, ""},
		"without anything, for all": {[]string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sleep", "1000")
			cmd.Env = test.env
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			got, clear := environment(cmd.Process.Pid, "HOST")
			for !clear { // it is about to become sleep
				got, clear = environment(cmd.Process.Pid, "HOST")
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got, clear := environment(2, "HOST"); got != "" || !clear { // kthreadd, or in a container nobody
		t.Errorf("of a thread of the kernel: %q, clear: %t", got, clear)
	}
}
