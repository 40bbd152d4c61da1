//go:build testhost

// These need root and a system of their own: they run in a container with systemd and bash, cron and sudo (make test-host).
// They make a user and directories there, and leave the rest as they found it.

package reset_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/host/dockerstore"
	"github.com/remuda-ci/remuda/internal/host/reset"
	"github.com/remuda-ci/remuda/internal/tree"
)

const (
	user = "slate"
	uid  = 4242
	top  = "/var/lib/reset-test"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, path, text string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path, []byte(text), 0o755))
}

// sh runs a script as root.
func sh(t testing.TB, script string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "/bin/bash", "-e", "-o", "pipefail", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// distribution are the files of one, as many as the real one has.
const distribution = 7000

// newHost makes the user and the directories of a host, and records its baseline.
func newHost(t testing.TB) reset.Plan {
	t.Helper()
	return newHostOf(t, distribution)
}

// newSmallHost is one with a distribution of a few files, for tests of something else.
func newSmallHost(t testing.TB) reset.Plan {
	t.Helper()
	return newHostOf(t, 50)
}

func newHostOf(t testing.TB, files int) reset.Plan {
	t.Helper()
	sh(t, fmt.Sprintf("id %s >/dev/null 2>&1 || useradd -u %d -m -d %s/home -s /bin/bash %s", user, uid, top, user))
	check(t, tree.Remove(top))
	t.Cleanup(func() { check(t, tree.Remove(top)) })
	for i := range files {
		put(t, fmt.Sprintf("%s/original/dir-%d/dir-%d/file-%d", top, i%10, i%700, i), "x")
	}
	check(t, os.MkdirAll(top+"/state", 0o700))
	put(t, top+"/hook", "true")
	owner := tree.Owner{UID: uid, GID: uid}
	p := reset.Plan{
		User: user, UID: uid, GID: uid,
		Home: reset.Dir{Path: top + "/home", Owner: owner, Mode: 0o750}, Skeleton: "/etc/skel",
		Renew:    []reset.Dir{{Path: top + "/work", Owner: owner, Mode: 0o755}},
		Mirrors:  []reset.Mirror{{From: top + "/original", To: top + "/runner", Owner: owner}},
		Units:    []string{"remuda-runner-*", "remuda-register-*", "remuda-deregister-*"},
		OwnUnits: []string{"remuda-clean-*"},
		Docker:   "/usr/bin/docker", Images: &dockerstore.Store{Socket: "/run/docker.sock", Dir: top + "/state"},
		Hook: top + "/hook", HookLimit: time.Minute,
		MinimumFree: 1 << 20, MinimumFreeInodes: 1000,
		Baseline: top + "/state/baseline.json", Unchanged: []string{top + "/original", "/bin/bash"},
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		p.Empty = append(p.Empty, reset.Dir{Path: dir, Mode: 0o777 | fs.ModeSticky})
	}
	// The first renewal is that of a host without a past.
	check(t, reset.Record(t.Context(), p))
	check(t, clean(t, p))
	check(t, reset.Record(t.Context(), p))
	check(t, reset.Verify(t.Context(), p))
	return p
}

func clean(t testing.TB, p reset.Plan) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return reset.Run(ctx, p, hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Debug}))
}

// job runs a script as a job: in a unit of a run, as the user, with the limits that such a unit has. It is over when the
// file is there that the script makes by "ready"; it need not end.
func job(t testing.TB, script string) {
	t.Helper()
	mark := top + "/work/done"
	put(t, top+"/job", `ready() { touch `+mark+`; }`+"\n"+script+"\n")
	sh(t, "systemd-run --quiet --no-block --collect --unit=remuda-runner-1 --uid="+user+" --gid="+user+
		" -p LimitNPROC=300 -p KillMode=control-group -p WorkingDirectory="+top+"/work -E HOME="+top+"/home /bin/bash "+top+"/job")
	wait(t, "the job", func() bool { _, err := os.Stat(mark); return err == nil })
}

// waitLimit is far more than anything takes here.
const waitLimit = 20 * time.Second

func wait(t testing.TB, what string, until func() bool) {
	t.Helper()
	for end := time.Now().Add(waitLimit); !until(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, waitLimit)
		}
	}
}

// After each of these the next run finds nothing.
func TestHostileJobs(t *testing.T) {
	p := newHost(t)
	tests := map[string]struct {
		job string
		// root is done by root at the same time, as by a job with sudo.
		root func(t *testing.T)
	}{
		"nothing":                        {job: "ready"},
		"a daemon that forks twice":      {job: "( ( setsid sleep 1000 & ) & ); ready"},
		"a session that ignores signals": {job: `setsid bash -c 'trap "" TERM HUP INT; while :; do sleep 1000; done' & ready; trap "" TERM; sleep 1000`},
		"a daemon in another group": {job: "ready; sleep 1000", root: func(t *testing.T) {
			sh(t, "setsid setpriv --reuid "+user+" --regid "+user+" --clear-groups sleep 1001 >/dev/null 2>&1 & echo $$ >/dev/null")
		}},
		"a process with the user's id saved alone": {job: "ready", root: func(t *testing.T) {
			sh(t, "setsid setpriv --ruid "+user+" sleep 1002 >/dev/null 2>&1 &")
		}},
		"files of root": {job: "mkdir -p d; ready", root: func(t *testing.T) {
			sh(t, "umask 077; cd "+top+"/work/d; mkdir -p a/b; echo x >a/b/c; chmod 000 a; cp /bin/true /tmp/suid; chmod 4755 /tmp/suid; echo x >/dev/shm/x")
		}},
		"immutable files": {job: "mkdir -p d/e; touch d/e/f; ready", root: func(t *testing.T) {
			sh(t, "cd "+top+"; chattr +i work/d/e/f work/d/e; chattr +a work/d; touch home/x; chattr +i home/x; touch runner/y; chattr +i runner/y runner/dir-1")
		}},
		"links out":    {job: "ln -s /etc etc; ln -s / " + top + "/home/root; ln -s /etc/passwd /tmp/link; mv " + top + "/runner/dir-1 x; ln -s /etc " + top + "/runner/dir-1; rm -rf x; ready"},
		"deep and odd": {job: `for i in {1..60}; do mkdir -p $'a\nb' && cd $'a\nb'; done; touch -- -rf; chmod 000 .; ready`},
		"no directory": {job: "ready", root: func(t *testing.T) {
			sh(t, "cd "+top+"; rm -rf work home; ln -s /etc work; ln -s /root home")
		}},
		"a fork bomb":  {job: `ready; bomb() { bomb | bomb & }; while :; do bomb; done 2>/dev/null`},
		"an open file": {job: "exec 3>big; rm big; head -c 10000000 /dev/zero >&3; ready; sleep 1000"},
		"a listener":   {job: `perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalPort => 4243) or die; open F, ">done"; sleep 1000'`},
		"another PATH": {job: `echo 'PATH=/tmp/evil:$PATH' >>~/.profile; echo evil >~/.bashrc; mkdir ~/.ssh; mkdir -p /tmp/evil; cp /bin/true /tmp/evil/git; ready`},
		"a cron job":   {job: "(echo '* * * * * touch /tmp/cron'; echo '@reboot sleep 1') | crontab -; ready"},
		"queues":       {job: `perl -e 'shmget(0, 4096, 0700) // die; msgget(0, 0700) // die; semget(0, 1, 0700) // die; open F, ">/dev/mqueue/q" or die; open F, ">done"'`},
		"lingering": {job: "ready", root: func(t *testing.T) {
			sh(t, "mkdir -p /var/lib/systemd/linger; touch /var/lib/systemd/linger/"+user+"; systemctl start user@4242.service || true")
		}},
		"a unit that is always started again": {job: "ready", root: func(t *testing.T) {
			sh(t, "systemd-run --quiet --unit=remuda-runner-2 --uid="+user+" -p Restart=always -p RestartSec=0 sleep 1000")
		}},
		"a unit that failed": {job: "ready", root: func(t *testing.T) {
			sh(t, "systemd-run --quiet --unit=remuda-register-3 --uid="+user+" false; sleep 0.2")
		}},
		"a mount in the work directory": {job: "mkdir -p a/b '" + top + "/home/o d'; ready", root: func(t *testing.T) {
			sh(t, "cd "+top+"/work; mount --bind /etc a/b; mount -t tmpfs x a; mkdir a/c; mount --bind /usr a/c; mount --bind /etc '"+top+"/home/o d'")
		}},
		"a mount over the work directory": {job: "ready", root: func(t *testing.T) {
			sh(t, "mount --bind /etc "+top+"/work; mount -t tmpfs x /tmp; echo x >/tmp/x; mount --bind /etc/passwd "+top+"/runner/dir-1/dir-1/file-1")
		}},
		"files where everybody may write": {
			job: `mkdir -p /run/lock/d/e; touch /run/lock/d/e/f $'/run/lock/a\nb'; chmod 000 /run/lock/d/e; ln -s /etc /run/lock/etc; mkfifo /run/lock/pipe; ready`,
			root: func(t *testing.T) { // as Ubuntu has it, with what is another's
				sh(t, "mkdir -p /var/crash/theirs /var/crash/mine; chmod 1777 /var/crash; chown "+user+" /var/crash/mine; touch /var/crash/mine/x; chattr +i /var/crash/mine/x")
				sh(t, "mount --bind /etc /run/lock/d; mkdir -p /run/user/4242; chown "+user+" /run/user/4242")
			},
		},
		"keys": {job: os.Args[0] + " -test.run='^TestKeysOfAJob$' -test.v && ready"},
		"a full disk": {job: "ready", root: func(t *testing.T) {
			sh(t, "mount -t tmpfs -o size=1m x "+top+"/home; head -c 2000000 /dev/zero >"+top+"/home/x || true; head -c 2000000 /dev/zero >/dev/shm/x")
		}},
	}
	precious := sh(t, "cat /etc/passwd | sha256sum; ls -laR /etc | grep -v '^total' | sha256sum")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job(t, test.job)
			if test.root != nil {
				test.root(t)
			}
			start := time.Now()
			check(t, clean(t, p))
			cleaned := time.Now()
			if err := reset.Verify(t.Context(), p); err != nil {
				allowed(t, name, p, err)
			}
			t.Logf("clean %s, check %s", cleaned.Sub(start), time.Since(cleaned))
			if found := sh(t, "find /run /var /dev -user "+user+" -not -path '"+top+"/*'; sed -n 's/^ *4242: *[0-9]* //p' /proc/key-users"); found != "" {
				t.Errorf("left of the user:\n%s", found)
			}
			if after := sh(t, "cat /etc/passwd | sha256sum; ls -laR /etc | grep -v '^total' | sha256sum"); after != precious {
				t.Error("/etc was changed")
			}
		})
	}
}

// TestKeysOfAJob is a job that leaves keys, in each keyring that outlives it.
func TestKeysOfAJob(t *testing.T) {
	if os.Getuid() != uid {
		return
	}
	persistent, err := unix.KeyctlInt(unix.KEYCTL_GET_PERSISTENT, -1, unix.KEY_SPEC_PROCESS_KEYRING, 0, 0)
	if !errors.Is(err, unix.EOPNOTSUPP) { // a kernel without
		check(t, err)
		_, err = unix.AddKey("user", "slate", []byte("evil"), persistent)
		check(t, err)
	}
	for _, keyring := range []int{unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_USER_SESSION_KEYRING} {
		_, err := unix.AddKey("user", "slate", []byte("evil"), keyring)
		check(t, err)
	}
	_, err = unix.KeyctlInt(unix.KEYCTL_LINK, unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_PROCESS_KEYRING, 0, 0)
	check(t, err)
	below, err := unix.AddKey("keyring", "below", nil, unix.KEY_SPEC_USER_KEYRING)
	check(t, err)
	_, err = unix.AddKey("user", "deeper", []byte("evil"), below)
	check(t, err)
}

// allowed: a job that deletes a link to the distribution has changed that, and its host is withdrawn. For the others it is
// made again.
func allowed(t *testing.T, name string, p reset.Plan, err error) {
	t.Helper()
	var findings *reset.Findings
	if !errors.As(err, &findings) {
		t.Fatal(err)
	}
	for _, sentence := range findings.All {
		if name != "links out" || !strings.Contains(sentence, "/original/dir-1/") {
			t.Error(sentence)
		}
	}
	check(t, reset.Record(t.Context(), p))
}

// What Clean cannot undo, Check sees: the host is withdrawn.
func TestWithdrawn(t *testing.T) {
	p := newHost(t)
	tests := map[string]struct{ do, undo, want string }{
		"a service of root": {"systemd-run --quiet --unit=evil sleep 1000", "systemctl stop evil", "evil.service"},
		"a process of root in a scope": {
			"systemd-run --quiet --scope --unit=evil sleep 1000 >/dev/null 2>&1 & sleep 0.3", "systemctl stop evil.scope", `("sleep") of evil.scope runs`,
		},
		"a process of root in a service of the image": {
			"setsid sleep 1003 >/dev/null 2>&1 & echo $! >/sys/fs/cgroup/system.slice/cron.service/cgroup.procs; echo $! >/run/evil.pid",
			"kill $(cat /run/evil.pid); rm /run/evil.pid", `("sleep") of cron.service runs`,
		},
		"a process of another user, in systemd's own place": {
			"setsid setpriv --reuid 65534 --clear-groups sleep 1004 >/dev/null 2>&1 & echo $! >/sys/fs/cgroup/init.scope/cgroup.procs; echo $! >/run/evil.pid",
			"kill $(cat /run/evil.pid); rm /run/evil.pid", `("sleep") of init.scope runs`,
		},
		"a unit file":        {"echo x >/etc/systemd/system/evil.service", "rm /etc/systemd/system/evil.service", "evil.service"},
		"a cron job of root": {"echo x >/etc/cron.d/evil", "rm /etc/cron.d/evil", "/etc/cron.d/evil"},
		"a preload":          {"touch /etc/ld.so.preload", "rm /etc/ld.so.preload", "ld.so.preload"},
		"a daemon of root that listens": {
			`perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalPort => 4244) or die; exit if fork; open STDOUT, ">/dev/null"; open STDERR, ">/dev/null"; open F, ">/run/evil.pid"; print F $$; close F; sleep 1000'; sleep 0.3`,
			"kill $(cat /run/evil.pid); rm /run/evil.pid; sleep 0.2", "tcp 0.0.0.0:4244"},
		"the distribution": {"echo evil >" + top + "/original/dir-1/dir-1/file-1", "true", "/original/dir-1/dir-1/file-1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sh(t, test.do)
			check(t, clean(t, p))
			if err := reset.Verify(t.Context(), p); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about %s", err, test.want)
			}
			sh(t, test.undo)
			check(t, reset.Record(t.Context(), p))
		})
	}
	t.Run("a small disk", func(t *testing.T) {
		p := p
		p.MinimumFree = 1 << 60
		if err := reset.Verify(t.Context(), p); err == nil || !strings.Contains(err.Error(), "MiB are free") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a hook that fails", func(t *testing.T) {
		p := p
		put(t, top+"/hook", "echo no licence server; exit 1")
		if err := clean(t, p); err == nil || !strings.Contains(err.Error(), "no licence server") {
			t.Errorf("error %v", err)
		}
	})
}

// A clean-up that is killed anywhere is begun again, and the second one ends.
func TestCutShort(t *testing.T) {
	p := newHost(t)
	for cut := time.Millisecond; cut < 2*time.Second; cut *= 2 {
		job(t, "touch x ~/y /tmp/z; setsid sleep 1000 & mkdir -p /tmp/a/b; ready; sleep 1000")
		// The whole process is killed, as a unit would be.
		cmd := exec.Command(os.Args[0], "-test.run=^TestCleanAlone$")
		cmd.Env = append(os.Environ(), "SLATE_ALONE=1")
		check(t, cmd.Start())
		time.AfterFunc(cut, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		check(t, clean(t, p))
		check(t, reset.Verify(t.Context(), p))
	}
}

// TestCleanAlone is the other process of TestCutShort.
func TestCleanAlone(t *testing.T) {
	if os.Getenv("SLATE_ALONE") == "" {
		return
	}
	owner := tree.Owner{UID: uid, GID: uid}
	p := reset.Plan{
		User: user, UID: uid, GID: uid, Home: reset.Dir{Path: top + "/home", Owner: owner, Mode: 0o750}, Skeleton: "/etc/skel",
		Renew:    []reset.Dir{{Path: top + "/work", Owner: owner, Mode: 0o755}},
		Mirrors:  []reset.Mirror{{From: top + "/original", To: top + "/runner", Owner: owner}},
		Units:    []string{"remuda-runner-*"},
		Empty:    []reset.Dir{{Path: "/tmp", Mode: 0o777 | fs.ModeSticky}},
		Baseline: top + "/state/baseline.json",
	}
	check(t, clean(t, p))
}

// BenchmarkCleanAndCheck is of an ordinary host: a distribution of 7,000 files and a work directory of 2,000.
func BenchmarkCleanAndCheck(b *testing.B) {
	p := newHost(b)
	for b.Loop() {
		b.StopTimer()
		job(b, "mkdir -p a/b; for i in {1..2000}; do echo x >a/b/$i; done; setsid sleep 1000 & ready; sleep 1000")
		b.StartTimer()
		check(b, reset.Run(b.Context(), p, hclog.NewNullLogger()))
		check(b, reset.Verify(b.Context(), p))
	}
}
