//go:build testhost

package host_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// insideWithin bounds the tests of one machine.
const insideWithin = 5 * time.Minute

// TestInside runs the tests that need a machine of their own, those of
// internal/host with the tag testhost: scripts/test-host has compiled them.
func TestInside(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob(filepath.Join(setting.dist, "tests", "*.test"))
	check(t, err)
	if len(programs) == 0 {
		t.Fatal("there are no tests to run")
	}
	for _, program := range programs {
		name := strings.TrimSuffix(filepath.Base(program), ".test")
		only, err := os.ReadFile(program + ".run")
		check(t, err)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runInside(t, program, strings.TrimSpace(string(only)))
		})
	}
}

// runInside runs the tests of a program that match a pattern in a machine.
func runInside(t *testing.T, program, pattern string) {
	w := newWorld(t)
	s := newSystem(t, image(t)...)
	s.copyFile(t, program, "opt/inside.test", 0o755)
	// The tests have rules of their own.
	run(t, "systemctl", "--root="+s.root, "mask", "agentd.service", "remuda-firewall.service")
	// Keys are the user's, on all machines that this one boots: those here have users of their own, and no two packages the same.
	m := boot(t, s, w.connect(t), "@keyring")
	m.booted()
	ctx, cancel := context.WithTimeout(t.Context(), insideWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", append(m.enter(),
		"systemd-run", "--quiet", "--wait", "--pipe", "--collect", "--property=Delegate=yes", "--working-directory=/opt",
		"/opt/inside.test", "-test.v", "-test.run="+pattern, "-test.timeout="+strconv.Itoa(int(insideWithin.Seconds())-10)+"s")...)
	out, err := cmd.CombinedOutput()
	t.Log(results(string(out)))
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// results are the lines that say how tests came out.
func results(output string) string {
	var lines strings.Builder
	lines.WriteString("\n")
	for line := range strings.Lines(output) {
		if strings.HasPrefix(strings.TrimSpace(line), "--- ") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}
