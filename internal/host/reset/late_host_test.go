//go:build testhost

package reset_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/host/reset"
)

// listenAt is a program that listens at a port, for as long as a minute.
func listenAt(port int) string {
	return fmt.Sprintf(`/usr/bin/perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Listen => 1, LocalPort => %d, ReuseAddr => 1) or die; sleep 60'`, port)
}

// lateUnits are of the image, and not started before the first run: a service, one whose script leaves a daemon, one for
// logins, as with ssh, one that is itself the login, as at a console, one that takes long to be reloaded and
// to be stopped, one whose workers outlive it, as those of amazon-ssm-agent, a socket that systemd listens at, a mount and one by /etc/fstab.
var lateUnits = map[string]string{
	"reset-late.service":    "[Service]\nExecStart=" + listenAt(4251) + "\n",
	"reset-script.service":  "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/bash -c \"" + listenAt(4252) + " & sleep 0.2\"\n",
	"reset-login.service":   "[Service]\nExecStart=/bin/bash -c \"su - root -c 'echo $$$$ >/run/reset-login; exec sleep 1005'; true\"\n",
	"reset-console.service": "[Service]\nExecStart=/bin/su - root -c 'echo $$$$ >/run/reset-login; exec sleep 1005'\n",
	"reset-slow.service":    "[Service]\nExecStart=/bin/sleep 1006\nExecReload=/bin/sleep 5\nExecStop=/bin/sleep 5\n",
	"reset-worker.service":  "[Service]\nKillMode=process\nExecStart=/bin/bash -c '/bin/sleep 1007 & exec /bin/sleep 1008'\n",
	"reset-socket.socket":   "[Socket]\nListenStream=127.0.0.1:4253\nListenDatagram=4254\n",
	"reset-socket.service":  "[Service]\nExecStart=/bin/true\n",
	"mnt.mount":             "[Mount]\nWhat=tmpfs\nWhere=/mnt\nType=tmpfs\n",
}

const startLate = "systemctl start reset-late.service reset-script.service reset-socket.socket mnt.mount media.mount"

// newLateHost is a host with these units. They are gone when the test ends.
func newLateHost(t *testing.T) reset.Plan {
	t.Helper()
	fstab, err := os.ReadFile("/etc/fstab")
	check(t, err)
	t.Cleanup(func() {
		stopLate(t)
		for name := range lateUnits {
			check(t, os.Remove("/etc/systemd/system/"+name))
		}
		check(t, os.WriteFile("/etc/fstab", fstab, 0o644))
		undo(t, "systemctl daemon-reload")
	})
	for name, text := range lateUnits {
		check(t, os.WriteFile("/etc/systemd/system/"+name, []byte(text), 0o644))
	}
	check(t, os.WriteFile("/etc/fstab", append(fstab, "tmpfs /media tmpfs noauto 0 0\n"...), 0o644))
	sh(t, "systemctl daemon-reload")
	return newSmallHost(t)
}

func stopLate(t *testing.T) {
	undo(t, "systemctl stop reset-login.service reset-console.service reset-slow.service reset-late.service reset-script.service reset-socket.socket reset-socket.service mnt.mount media.mount")
}

// undo is sh when the test has ended.
func undo(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("/bin/bash", "-ec", script).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
}

// What units of the image begin later is not a finding, even if a job with sudo has started them.
func TestLate(t *testing.T) {
	p := newLateHost(t)
	job(t, "ready")
	sh(t, startLate+"; sleep 0.3")
	check(t, clean(t, p))
	check(t, reset.Verify(t.Context(), p))
	sh(t, "systemctl daemon-reload") // the generators have written their units again
	start := time.Now()
	check(t, clean(t, p))
	cleaned := time.Now()
	check(t, reset.Verify(t.Context(), p))
	t.Logf("clean %s, check %s", cleaned.Sub(start), time.Since(cleaned))
	sh(t, "mountpoint -q /mnt; mountpoint -q /media; systemctl is-active reset-late.service reset-script.service reset-socket.socket")
}

// A login is not a finding, nor is the manager that systemd runs for its user. What a login leaves behind is one.
func TestLogin(t *testing.T) {
	p := newLateHost(t)
	for _, service := range []string{"reset-console.service", "reset-login.service"} {
		sh(t, "systemctl start "+service)
		wait(t, "the login", func() bool { _, err := os.Stat("/run/reset-login"); return err == nil })
		sh(t, "systemctl is-active user@0.service; ls /run/systemd/transient/session-*.scope; grep -q user-0.slice/session- /proc/$(cat /run/reset-login)/cgroup")
		check(t, clean(t, p))
		check(t, reset.Verify(t.Context(), p))

		// A login that is the service itself ends as a whole when that is stopped.
		sh(t, "systemctl kill --kill-whom=main --signal=KILL "+service+"; sleep 0.3")
		if err := reset.Verify(t.Context(), p); err == nil || !strings.Contains(err.Error(), `("sleep") of session-`) {
			t.Errorf("%s: error %v, want one about what the login has left", service, err)
		}
		sh(t, "kill $(cat /run/reset-login); rm /run/reset-login; sleep 0.3; systemctl is-active user@0.service")
	}
	start := time.Now()
	check(t, reset.Verify(t.Context(), p)) // which waits for the manager of that user to end
	t.Logf("check %s", time.Since(start))
}

// What reloads or stops a unit of the image may take its time, and be born long after the start.
func TestSlow(t *testing.T) {
	p := newLateHost(t)
	for do, during := range map[string]string{"reload": "reloading", "stop": "deactivating"} {
		sh(t, "systemctl start reset-slow.service; sleep 1.2; systemctl "+do+" --no-block reset-slow.service; sleep 0.2")
		check(t, reset.Verify(t.Context(), p))
		// It was no finding at once, not for having ended in time.
		sh(t, "test $(systemctl show --value -p ActiveState reset-slow.service) = "+during)
		wait(t, "the end of the "+do, func() bool { return sh(t, "systemctl show --value -p ControlPID reset-slow.service") == "0" })
	}
}

// Workers that a unit of the image has left behind are known by the check before; what root has put beside them is not.
func TestRestarted(t *testing.T) {
	p := newLateHost(t)
	t.Cleanup(func() {
		undo(t, "systemctl stop reset-worker.service; pkill -x -f '/bin/sleep 1007' || true; sleep 0.1")
	})
	sh(t, "systemctl start reset-worker.service; sleep 1.2") // later than noteDelay
	check(t, reset.Verify(t.Context(), p))
	sh(t, "systemctl restart reset-worker.service; sleep 0.3; test $(pgrep -c -x -f '/bin/sleep 1007') = 2")
	check(t, reset.Verify(t.Context(), p))
	const group = "/sys/fs/cgroup/system.slice/reset-worker.service/cgroup.procs"
	sh(t, "setsid /bin/sleep 1009 >/dev/null 2>&1 & echo $! >"+group+"; echo $! >/run/evil.pid; sleep 1.2; systemctl restart reset-worker.service")
	err := reset.Verify(t.Context(), p)
	undo(t, "kill $(cat /run/evil.pid); rm /run/evil.pid; sleep 0.1")
	if err == nil || !strings.Contains(err.Error(), "(\"sleep\") of reset-worker.service runs") {
		t.Errorf("error %v, want one about what was moved in", err)
	}
}

// A mount over that of a unit goes, and the unit's stays.
func TestLateMountHidden(t *testing.T) {
	p := newLateHost(t)
	sh(t, startLate+"; sleep 0.3; touch /mnt/lower; mount -t tmpfs evil /mnt; mount -t tmpfs evil /media")
	check(t, clean(t, p))
	check(t, reset.Verify(t.Context(), p))
	sh(t, "test -e /mnt/lower; mountpoint -q /media; ! grep evil /proc/self/mounts")
}

// What passes itself off as the image's is a finding.
func TestPassedOff(t *testing.T) {
	p := newLateHost(t)
	const dropIn = "mkdir -p /run/systemd/system/reset-late.service.d; printf '[Service]\\nExecStart=\\nExecStart=%s\\n' \"" +
		"$EVIL\" >/run/systemd/system/reset-late.service.d/x.conf; systemctl daemon-reload; "
	evil := "EVIL=$(cat <<'end'\n" + listenAt(4261) + "\nend\n); "
	const undoDropIn = "rm -rf /run/systemd/system/reset-late.service.d; "
	moved := func(unit string) string {
		return "systemctl start " + unit + "; sleep 0.3; setsid " + listenAt(4262) + " >/dev/null 2>&1 & sleep 0.3; " +
			"echo $! >/sys/fs/cgroup/system.slice/" + unit + "/cgroup.procs; echo $! >/run/evil.pid"
	}
	const undoMoved = "kill $(cat /run/evil.pid); rm /run/evil.pid; sleep 0.1"
	tests := map[string]struct{ do, undo, want string }{
		"a drop-in that is deleted again": {
			evil + dropIn + "systemctl start reset-late.service; sleep 0.3; " + undoDropIn, "systemctl daemon-reload", "of reset-late.service listens at tcp 0.0.0.0:4261",
		},
		"a process moved into a service":  {moved("reset-late.service"), undoMoved, "of reset-late.service listens at tcp 0.0.0.0:4262"},
		"a process moved behind a script": {moved("reset-script.service"), undoMoved, "of reset-script.service listens at tcp 0.0.0.0:4262"},
		"a unit made by a call": {
			"systemd-run --quiet --unit=reset-call " + listenAt(4263) + "; sleep 0.3", "systemctl stop reset-call.service", "of reset-call.service listens at tcp 0.0.0.0:4263",
		},
		"a socket that systemd listens at": {
			"systemd-run --quiet --unit=reset-called --socket-property=ListenStream=4265 /bin/true", "systemctl stop reset-called.socket", "of init.scope listens at tcp",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { undo(t, test.undo); stopLate(t) })
			sh(t, test.do)
			check(t, clean(t, p))
			if err := reset.Verify(t.Context(), p); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about %s", err, test.want)
			}
		})
	}
}
