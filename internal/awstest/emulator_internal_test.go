package awstest

import (
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
