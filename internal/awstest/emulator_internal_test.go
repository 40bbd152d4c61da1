package awstest

import (
	"net"
	"os/exec"
	"strings"
	"testing"
)

func TestAFailedStartSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"it ends":       {"echo no such jar >&2; exit 1", []string{"start broken", "ended", "no such jar"}},
		"it is missing": {"", []string{"start broken", "no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := emulator{name: "broken", port: anyPort, command: func(installation, int) *exec.Cmd {
				if test.script == "" {
					return exec.Command("/no/such/program")
				}
				return exec.Command("sh", "-c", test.script)
			}}.start()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// A port is free when it is chosen and may be taken when the emulator comes.
func TestAnotherPortIfOneIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	e, asked := dynamodbLocal, 0
	e.port = func() (int, error) {
		if asked++; asked == 1 {
			return taken.Addr().(*net.TCPAddr).Port, nil
		}
		return freePort()
	}
	endpoint, stop, err := e.start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if asked != 2 {
		t.Errorf("%s after asking for %d ports, want 2", endpoint, asked)
	}
	stop()
	if err := e.ready(t.Context(), endpoint); err == nil {
		t.Errorf("%s still answers", endpoint)
	}
}
