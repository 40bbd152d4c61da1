//go:build testhost

package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
)

const (
	// bootWithin bounds a boot, which takes a third of a second.
	bootWithin = time.Minute
	// execWithin bounds a command in a machine.
	execWithin = 30 * time.Second
	// powerOffWithin bounds a shutdown: what does not end at once is killed by
	// systemd after its own time limits.
	powerOffWithin = 30 * time.Second
)

// machine is a booted container with a systemd of its own.
type machine struct {
	*system
	link
	t       testing.TB
	name    string
	console local.Log
	nspawn  *exec.Cmd
	off     chan struct{} // closed when it is powered off
	init    int           // the process id of its systemd here; 0: not yet
}

// boot starts a machine, which may make these system calls besides the usual
// ones. It is dead when the test ends; if the test failed, its journal is logged.
func boot(t testing.TB, s *system, l link, calls ...string) *machine {
	t.Helper()
	m := &machine{system: s, link: l, t: t, name: l.namespace, off: make(chan struct{})}
	m.start(newGroups(t, m.name), append([]string{"bpf", "perf_event_open"}, calls...)) // of a machine of its own, for IPAddressDeny=
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: console:\n%s", m.name, m.console.String())
			t.Logf("%s: journal:\n%s", m.name, m.lastJournal())
		}
		m.pull()
	})
	m.findInit()
	return m
}

// nspawn is a command for systemd-nspawn in groups of its own: it makes those
// of the machine below the group that it is started in.
func nspawn(g groups, args ...string) *exec.Cmd {
	const inGroups = `for d in $0; do echo $$ >"$d/cgroup.procs" || exit 1; done; exec "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", inGroups, strings.Join(g, " ")}, args...)...)
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	return cmd
}

// firstProcess is the machine's own systemd. Before, it takes off the boot id
// that systemd-nspawn invents: a unit with a /proc of its own, as agentd has,
// would see the true one, and take all that it has done before for another
// boot's.
const firstProcess = "umount /proc/sys/kernel/random/boot_id; exec /lib/systemd/systemd"

func (m *machine) start(g groups, calls []string) {
	m.t.Helper()
	m.nspawn = nspawn(g, "systemd-nspawn", "--register=no", "--keep-unit", "--quiet", "--console=read-only",
		"--directory="+m.root, "--machine="+m.name, "--network-namespace-path=/run/netns/"+m.namespace,
		"--capability=all", "--system-call-filter="+strings.Join(calls, " "),
		"--kill-signal=SIGRTMIN+4", // power off
		"/bin/sh", "-c", firstProcess,
	)
	m.nspawn.Stdout, m.nspawn.Stderr = &m.console, &m.console
	m.nspawn.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig comes when the thread ends that started it
		err := m.nspawn.Start()
		started <- err
		if err == nil {
			_ = m.nspawn.Wait() // how it ended is on its console
		}
		close(m.off)
	}()
	check(m.t, <-started)
}

// findInit finds the child of systemd-nspawn that is the machine's first
// process.
func (m *machine) findInit() {
	m.t.Helper()
	children := fmt.Sprintf("/proc/%d/task/%[1]d/children", m.nspawn.Process.Pid)
	eventually(m.t, bootWithin, m.name+" has a first process", func() bool {
		if m.isOff() {
			m.t.Fatalf("%s did not boot:\n%s", m.name, m.console.String())
		}
		list, err := os.ReadFile(children)
		if err != nil {
			return false
		}
		for _, child := range strings.Fields(string(list)) {
			if name, err := os.ReadFile("/proc/" + child + "/comm"); err == nil && strings.TrimSpace(string(name)) == "systemd" {
				m.init, err = strconv.Atoi(child)
				return err == nil
			}
		}
		return false
	})
}

// booted waits until systemd has started all that it was to start. Units that
// failed are the test's to judge.
func (m *machine) booted() {
	m.t.Helper()
	eventually(m.t, bootWithin, m.name+" has booted", func() bool {
		state, _ := m.try("systemctl", "is-system-running") // fails unless it is running
		return slices.Contains([]string{"running", "degraded"}, strings.TrimSpace(state))
	})
}

// try runs a command in the machine, as root and outside of all units, and
// returns what it printed.
func (m *machine) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), execWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", append(m.enter(), args...)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %s: %w\n%s", m.name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// enter are the arguments of nsenter for a command in the machine.
func (m *machine) enter() []string {
	return []string{"--target", strconv.Itoa(m.init), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--wdns=/", "--",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "HOME=/root", "LANG=C.UTF-8", "TERM=dumb", "SYSTEMD_PAGER=cat", "TZ=UTC"}
}

// exec is try of a command that must succeed.
func (m *machine) exec(args ...string) string {
	m.t.Helper()
	out, err := m.try(args...)
	check(m.t, err)
	return out
}

// sh runs a script of bash.
func (m *machine) sh(script string) string {
	m.t.Helper()
	return m.exec("bash", "-euo", "pipefail", "-c", script)
}

// status is the line that agentd tells systemctl.
func (m *machine) status() string { return m.property("agentd.service", "StatusText") }

// says waits until agentd's status has a text in it.
func (m *machine) says(text string) {
	m.t.Helper()
	last := ""
	for end := time.Now().Add(within); !strings.Contains(last, text); time.Sleep(lookEvery) {
		if time.Now().After(end) {
			m.t.Fatalf("agentd's status is not %q but %q", text, last)
		}
		last = m.status()
	}
}

// property of a unit, as systemctl shows it; empty if there is no such unit.
func (m *machine) property(unit, name string) string {
	out, err := m.try("systemctl", "show", "--value", "--property="+name, unit)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// journal is what units and identifiers wrote, by the filters of journalctl.
func (m *machine) journal(filters ...string) string {
	m.t.Helper()
	return m.exec(append([]string{"journalctl", "--no-pager", "--output=short-iso"}, filters...)...)
}

// lastJournal is all of it, whether or not the machine is up.
func (m *machine) lastJournal() string {
	out, err := command("journalctl", "--no-pager", "--output=short-precise", "--directory="+m.root+"/var/log/journal")
	if err != nil || len(out) < 200 {
		out, err = m.try("journalctl", "--no-pager", "--output=short-precise")
	}
	return errors.Join(errors.New(out), err).Error()
}

// words are what was said under an identifier on a machine that is down.
func (m *machine) words(identifier string) string {
	m.t.Helper()
	out, err := command("journalctl", "--no-pager", "--output=cat", "--directory="+m.root+"/var/log/journal", "--identifier="+identifier)
	check(m.t, err)
	return out
}

func (m *machine) isOff() bool {
	select {
	case <-m.off:
		return true
	default:
		return false
	}
}

// goesDown waits until the machine has powered itself off.
func (m *machine) goesDown(within time.Duration) {
	m.t.Helper()
	select {
	case <-m.off:
	case <-time.After(within):
		m.t.Fatalf("%s is still up after %s", m.name, within)
	}
}

// press is the power button, which EC2 presses when it ends an instance.
func (m *machine) press() {
	if m.isOff() {
		return
	}
	if err := syscall.Kill(m.nspawn.Process.Pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		m.t.Errorf("power off %s: %v", m.name, err)
	}
}

// pull is the plug.
func (m *machine) pull() {
	if m.isOff() {
		return
	}
	_ = m.nspawn.Process.Kill() // it may have ended already
	<-m.off
}

// units are the services that systemctl lists by a pattern or an option.
func (m *machine) units(which string) []string {
	m.t.Helper()
	out := m.exec("systemctl", "list-units", "--all", "--plain", "--no-legend", "--type=service", which)
	var names []string
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 0 {
			names = append(names, f[0])
		}
	}
	return names
}
