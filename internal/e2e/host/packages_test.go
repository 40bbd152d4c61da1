//go:build testhost

package host_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// ofAgentd and ofControld are files that a package brings, among others.
var (
	ofAgentd = []string{"usr/bin/agentd", "usr/lib/systemd/system/agentd.service", "usr/lib/systemd/system/remuda-firewall.service",
		"usr/lib/systemd/system/remuda-power-off.service", "usr/lib/remuda/metadata.nft", "etc/remuda/agentd.yaml"}
	ofControld = []string{"usr/bin/controld", "usr/lib/systemd/system/controld.service", "etc/remuda/controld.yaml"}
)

// TestDebs: installed on a machine that runs, removed and purged.
func TestDebs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := boot(t, newSystem(t, setting.root), w.connect(t))
	m.booted()
	for name, files := range map[string][]string{"remuda-agentd": ofAgentd, "remuda-controld": ofControld} {
		deb := "/opt/" + name + ".deb"
		m.copyFile(t, filepath.Join(setting.dist, "1.0.0", name+".deb"), deb, 0o644)
		m.exec("dpkg", "-i", deb)
		m.has(t, files...)
		daemon := strings.TrimPrefix(name, "remuda-")
		if got := m.exec(daemon, "version"); !strings.Contains(got, "1.0.0") {
			t.Errorf("%s version: %s", daemon, got)
		}
		m.exec("systemd-analyze", "verify", daemon+".service")
		if state, _ := m.try("systemctl", "is-enabled", daemon); strings.TrimSpace(state) != "disabled" {
			t.Errorf("%s is %s", daemon, state)
		}
		if state := m.property(daemon+".service", "ActiveState"); state != "inactive" {
			t.Errorf("%s is %s", daemon, state)
		}
		m.exec("dpkg", "--remove", name)
		m.hasNot(t, files[0], files[1])
		m.has(t, files[len(files)-1]) // configuration stays until it is purged
		m.exec("dpkg", "--purge", name)
		m.hasNot(t, files...)
	}
	if left := m.sh("ls /etc/remuda 2>/dev/null || true"); left != "" {
		t.Errorf("left in /etc/remuda: %s", left)
	}
	if failed := m.units("--state=failed"); len(failed) != 0 {
		t.Errorf("units that failed: %v", failed)
	}
}

// TestRPMs: installed into a root file system and erased.
func TestRPMs(t *testing.T) {
	t.Parallel()
	s := newSystem(t, setting.root)
	for name, files := range map[string][]string{"remuda-agentd": ofAgentd, "remuda-controld": ofControld} {
		// Debian's rpm knows nothing of what Debian has: no dependency would be met.
		rpm := func(args ...string) string {
			return run(t, "rpm", append([]string{"--root=" + s.root, "--dbpath=/var/lib/rpm"}, args...)...)
		}
		rpm("--nodeps", "--install", filepath.Join(setting.dist, "1.0.0", name+".rpm"))
		s.has(t, files...)
		out := rpm("--query", "--list", name)
		for _, f := range files {
			if !strings.Contains(out, "/"+f+"\n") {
				t.Errorf("%s has no %s", name, f)
			}
		}
		rpm("--nodeps", "--erase", name)
		s.hasNot(t, files...)
	}
}

// has and hasNot look for files of a machine.
func (s *system) has(t testing.TB, files ...string) {
	t.Helper()
	for _, f := range files {
		if !s.exists(f) {
			t.Errorf("there is no /%s", f)
		}
	}
}

func (s *system) hasNot(t testing.TB, files ...string) {
	t.Helper()
	for _, f := range files {
		if s.exists(f) {
			t.Errorf("there is still /%s", f)
		}
	}
}
