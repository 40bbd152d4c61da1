// Package systemd_test holds the units, rules and scripts of a host against what systemd says of them.
package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// exposure is the most that `systemd-analyze security` may say of a unit, from
// 0 to 10.
var exposure = map[string]float64{
	"agentd.service":           3.5,
	"controld.service":         1.5,
	"remuda-firewall.service":  3.5,
	"remuda-power-off.service": 3.5,
}

// analyze runs systemd-analyze, and gives what it prints.
func analyze(t *testing.T, args ...string) (string, error) {
	t.Helper()
	testrun.Fresh() // go test does not see the units that it reads
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatal("systemd-analyze is missing: scripts/host-tools systemd-analyze installs it on Debian as root")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func unitFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.service")
	if err != nil || len(files) != len(exposure) {
		t.Fatalf("%d units, and a bound of exposure for %d (%v)", len(files), len(exposure), err)
	}
	return files
}

var overall = regexp.MustCompile(`(?m)Overall exposure level for (\S+): ([0-9]+\.[0-9]+) `)

func TestSecurity(t *testing.T) {
	for _, unit := range unitFiles(t) {
		path, err := filepath.Abs(unit)
		if err != nil {
			t.Fatal(err)
		}
		out, err := analyze(t, "security", "--offline=true", "--no-pager", path)
		found := overall.FindStringSubmatch(out)
		if found == nil || found[1] != unit {
			t.Fatalf("%s: no level in what systemd-analyze says (%v):\n%s", unit, err, out)
		}
		level, err := strconv.ParseFloat(found[2], 64)
		most, ok := exposure[unit]
		if err != nil || !ok || level > most {
			t.Errorf("%s: its exposure is %s, and may be %.1f (%v):\n%s", unit, found[2], most, err, out)
		}
	}
}

// stubs are the units of systemd that ours name; a root of our own needs no
// installed one.
var stubs = []string{"sysinit", "basic", "shutdown", "network", "network-online", "nss-lookup", "multi-user"}

// root is a root directory with our units, the programs that they start, and
// nothing else.
func root(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range stubs {
		write(t, filepath.Join(dir, "usr/lib/systemd/system", name+".target"), "[Unit]\nDescription="+name+"\n", 0o644)
	}
	for _, unit := range unitFiles(t) {
		text := read(t, unit)
		write(t, filepath.Join(dir, "usr/lib/systemd/system", unit), text, 0o644)
		for _, line := range settings(text)["Service.ExecStart"] {
			write(t, filepath.Join(dir, strings.Fields(line)[0]), "#!/bin/sh\n", 0o755)
		}
	}
	return dir
}

// verify is every line that `systemd-analyze verify` has to say.
func verify(t *testing.T, root string, units []string) string {
	t.Helper()
	out, err := analyze(t, slices.Concat([]string{"verify", "--man=no", "--recursive-errors=yes", "--root=" + root}, units)...)
	if err != nil && out == "" {
		t.Fatalf("systemd-analyze verify says nothing and ends with %v", err)
	}
	return out
}

func TestVerify(t *testing.T) {
	if out := verify(t, root(t), unitFiles(t)); out != "" {
		t.Errorf("systemd-analyze verify says:\n%s", out)
	}
}

// TestVerifyFinds: a root of our own must not make verify blind.
func TestVerifyFinds(t *testing.T) {
	for name, test := range map[string]struct{ replace, by, says string }{
		"an unknown key":     {"RestartSec=3\n", "RestartSec=3\nRestartStepz=5\n", "Unknown key"},
		"a missing program":  {"/usr/bin/agentd", "/usr/bin/agent", "/usr/bin/agent is not executable"},
		"an impossible rule": {"UMask=0022", "UMask=9999", "Failed to parse mode value"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := root(t)
			path := filepath.Join(dir, "usr/lib/systemd/system/agentd.service")
			write(t, path, strings.ReplaceAll(read(t, path), test.replace, test.by), 0o644)
			if out := verify(t, dir, []string{"agentd.service"}); !strings.Contains(out, test.says) {
				t.Errorf("verify does not say %q, but:\n%s", test.says, out)
			}
		})
	}
}

// TestWhatMatters are the settings that something else relies on.
func TestWhatMatters(t *testing.T) {
	for _, test := range []struct{ unit, setting, want, why string }{
		{"agentd.service", "Service.Type", "notify", "its status line and its watchdog come by the same socket"},
		{"agentd.service", "Service.Restart", "always", "agentd ends with 1 also when it was killed, and a host needs its agent"},
		{"agentd.service", "Service.RestartPreventExitStatus", "0 78", "0 is powered off, 78 a configuration that can never work"},
		{"agentd.service", "Service.SuccessExitStatus", "1", "a stop would be a failure, and power off a host with a job on it"},
		{"agentd.service", "Service.WatchdogSec", "90", "a hung agent is as bad as none"},
		{"agentd.service", "Service.CapabilityBoundingSet", "", "uid 0 is for systemd's private bus alone"},
		{"agentd.service", "Service.StateDirectory", "remuda", "the one place besides RuntimeDirectory= that it may write"},
		{"agentd.service", "Service.StateDirectoryMode", "0755", "jobs run in it"},
		{"agentd.service", "Service.RuntimeDirectoryMode", "0700", "the environment files in it have secrets"},
		{"agentd.service", "Service.RuntimeDirectoryPreserve", "yes", "a unit that is about to start reads its file while agentd restarts"},
		{"agentd.service", "Service.ProtectSystem", "strict", "it writes only its directories"},
		{"agentd.service", "Service.ProtectProc", "default", "it finds the worker of a job in /proc"},
		{"agentd.service", "Service.PrivateTmp", "", "the reset takes its directory in /tmp away"},
		{"agentd.service", "Service.UMask", "0022", "the runner's user reads the hooks"},
		{"agentd.service", "Unit.OnFailure", "remuda-power-off.service", "a host without an agent costs money and does no work"},
		{"agentd.service", "Unit.StartLimitBurst", "10", "without a limit a broken agent is restarted for ever"},
		{"agentd.service", "Unit.StartLimitIntervalSec", "10min", "ten starts with growing delays take less"},
		{"agentd.service", "Unit.Requires", "", "stopping the firewall would stop the agent; the listener checks for itself"},
		{"controld.service", "Service.Type", "notify", "controld says READY=1"},
		{"controld.service", "Service.DynamicUser", "yes", "it needs no user of its own"},
		{"controld.service", "Service.LoadCredential", "remuda:/etc/remuda/credentials", "controld takes the copies of what controld.yaml names in that directory, by the prefix remuda_"},
		{"controld.service", "Service.TimeoutStopSec", "10", "controld has promised to end within 10 s"},
		{"controld.service", "Service.RestartPreventExitStatus", "2 78", "they can never work"},
		{"remuda-firewall.service", "Unit.Before", "agentd.service", "no job starts before the rules are in force"},
		{"remuda-firewall.service", "Service.RemainAfterExit", "yes", "an agent that restarts does not load them again"},
		{"remuda-firewall.service", "Service.ExecStop", "", "the rules hold until the host goes down"},
		{"remuda-power-off.service", "Service.StateDirectory", "", "it must start when /var/lib/remuda is what is broken"},
		{"remuda-power-off.service", "Service.ProtectProc", "default", "it finds the worker of a job in /proc"},
		{"remuda-power-off.service", "Service.CapabilityBoundingSet", "CAP_SYS_BOOT", "the last way to power off is the system call"},
		{"remuda-power-off.service", "Unit.Conflicts", "", "its start would cancel a restart of agentd"},
	} {
		if got := strings.Join(settings(read(t, test.unit))[test.setting], " "); got != test.want {
			t.Errorf("%s has %s=%s, want %q: %s", test.unit, test.setting, got, test.want, test.why)
		}
	}
}

// TestCredentials: the configuration names keys in the directory that the unit loads, and nowhere
// else.
func TestCredentials(t *testing.T) {
	const place = "/etc/remuda/credentials/"
	keys := regexp.MustCompile(`(?m)^[ #-]*([a-z_]+_file): (.*)$`).FindAllStringSubmatch(read(t, "controld.yaml"), -1)
	if len(keys) < 4 {
		t.Fatalf("controld.yaml names %d files", len(keys))
	}
	for _, key := range keys {
		if !strings.HasPrefix(key[2], place) {
			t.Errorf("%s is %s, and not in %s*", key[1], key[2], place)
		}
	}
}

// TestScriptsAreWhole: they run under any POSIX shell.
func TestScriptsAreWhole(t *testing.T) {
	testrun.Fresh() // go test does not see the scripts that are run
	var scripts []string
	for _, pattern := range []string{"guard-metadata", "power-off-when-idle", "packages/*-*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s (%v)", pattern, err)
		}
		scripts = append(scripts, found...)
	}
	for _, script := range scripts {
		if text := read(t, script); !strings.HasPrefix(text, "#!/bin/sh\n") {
			t.Errorf("%s does not begin with #!/bin/sh", script)
		}
		if info, err := os.Stat(script); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s is not executable: %v (%v)", script, info.Mode(), err)
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}

// TestGuardMetadata: the rules are in force unless the host file says exactly
// that they shall not be.
func TestGuardMetadata(t *testing.T) {
	testrun.Fresh() // go test does not see the script that is run
	const off = "table inet remuda\ndelete table inet remuda\n"
	for name, test := range map[string]struct{ file, want string }{
		"allowed":             {`{"region":"eu-west-1","pool":"build","jobs_read_metadata":true}`, off},
		"allowed, first":      {`{"jobs_read_metadata": true, "pool":"build"}`, off},
		"not allowed":         {`{"pool":"build","jobs_read_metadata":false}`, "RULES"},
		"not said":            {`{"pool":"build"}`, "RULES"},
		"no file":             {"", "RULES"},
		"cut short":           {`{"pool":"build","jobs_read_metadata":true`, "RULES"},
		"a text":              {`{"pool":"x\",\"jobs_read_metadata\":true,\""}`, "RULES"},
		"the end of a key":    {`{"no_jobs_read_metadata":true}`, "RULES"},
		"the start of a word": {`{"jobs_read_metadata":trueish}`, "RULES"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			// A stand-in for nft keeps what it is given.
			write(t, filepath.Join(dir, "nft"), "#!/bin/sh\n[ \"$2\" = - ] || exec <\"$2\"\ncat >"+dir+"/told\n", 0o755)
			write(t, filepath.Join(dir, "rules"), "RULES", 0o644)
			if test.file != "" {
				write(t, filepath.Join(dir, "host.json"), test.file, 0o644)
			}
			cmd := exec.CommandContext(t.Context(), "./guard-metadata", filepath.Join(dir, "host.json"), filepath.Join(dir, "rules"))
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if diff := cmp.Diff(test.want, read(t, filepath.Join(dir, "told"))); diff != "" {
				t.Errorf("nft was given (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPackagesShipEverything: no file here is left out of the packages, and what
// the units start is where they look for it.
func TestPackagesShipEverything(t *testing.T) {
	packages := read(t, "packages/agentd.yaml") + read(t, "packages/controld.yaml")
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		if !strings.Contains(packages, "src: systemd/"+e.Name()+",") {
			t.Errorf("%s is in no package", e.Name())
		}
	}
	for _, unit := range unitFiles(t) {
		for _, line := range settings(read(t, unit))["Service.ExecStart"] {
			if program := strings.Fields(line)[0]; !strings.Contains(packages, "dst: "+program+",") {
				t.Errorf("%s starts %s, which is in no package", unit, program)
			}
		}
	}
}

// settings are the values of a unit file by section and key, in their order.
func settings(text string) map[string][]string {
	all, section := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch key, value, ok := strings.Cut(line, "="); {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		case ok:
			all[section+"."+key] = append(all[section+"."+key], value)
		}
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// Units that read what cloud-init writes come after it, by every name that its unit has had (cloud-init 24.3, breaking changes).
func TestUnitsComeAfterCloudInit(t *testing.T) {
	for _, unit := range []string{"agentd.service", "remuda-firewall.service"} {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		after := strings.Fields(regexp.MustCompile(`(?m)^After=(.*)$`).FindStringSubmatch(string(text))[1])
		for _, want := range []string{"cloud-init.service", "cloud-init-network.service", "cloud-config.target"} {
			if !slices.Contains(after, want) {
				t.Errorf("%s does not come after %s", unit, want)
			}
		}
	}
}
