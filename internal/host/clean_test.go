package host_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

func (b *bed) clean(assignment int64) agent.Observed {
	b.Helper()
	b.check(b.Clean(context.Background(), agent.CleanUp{Assignment: assignment, RunBefore: "acme/shop/41"}))
	return b.until("the clean-up ends", func(s agent.Observed) bool {
		return s.Cleaned.Assignment == assignment && s.Cleaned.Phase != agent.PhaseRunning
	})
}

// process starts one with the mark of a host in its environment. The channel
// is closed when it has ended.
func process(t *testing.T, id string, args ...string) (ended chan struct{}) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), host.InstanceIDVariable+"="+id)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return ended
}

// dead waits for the end of a process that must have been killed.
func dead(ended chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// spared gives the end of a process that must live the time to be noticed.
func spared(ended chan struct{}) bool {
	select {
	case <-ended:
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}

func TestCleanKillsWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stubborn := process(t, b.id, "sh", "-c", "trap '' INT TERM HUP; while :; do sleep 0.05; done")
	other := process(t, b.id+"0", "sleep", "1000")
	unmarked := process(t, "", "sleep", "1000")
	if s := b.clean(8); s.Cleaned.Phase != agent.PhaseOK {
		t.Fatalf("cleaned: %+v", s.Cleaned)
	}
	if !dead(stubborn) {
		t.Error("a process of the host was left")
	}
	if !spared(other) || !spared(unmarked) {
		t.Error("a process of another user was killed")
	}
}

func TestCleanDeletesWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	precious := filepath.Join(t.TempDir(), "precious")
	b.check(os.WriteFile(precious, []byte("x"), 0o644))
	b.register()
	b.write("work/app/app/file", "", 0o644)
	b.write("home/.cache/mod/locked/file", "", 0o444)
	b.write("tmp/x", "", 0o644)
	b.write("runner/_diag/log", "", 0o644)
	b.write("runner/.env", "EVIL=1", 0o644)
	b.check(os.Remove(b.path("runner/.runner"))) // as config.sh remove does
	b.write("runner/.credentials", "", 0o600)
	b.check(os.Remove(b.path("runner/bin/Runner.Listener")))
	b.write("runner/bin/Runner.Listener", "#!/bin/sh\necho evil", 0o755)
	b.check(os.Symlink(filepath.Dir(precious), b.path("work/out")))
	b.check(os.Chmod(b.path("home/.cache/mod/locked"), 0o555))
	b.check(os.RemoveAll(b.path("tmp")))
	b.check(os.Symlink(filepath.Dir(precious), b.path("tmp")))

	if s := b.clean(8); s.Cleaned.Phase != agent.PhaseOK {
		t.Fatalf("cleaned: %+v", s.Cleaned)
	}
	for _, dir := range []string{"work", "home", "tmp"} {
		entries, err := os.ReadDir(b.path(dir))
		info, lerr := os.Lstat(b.path(dir))
		if err != nil || lerr != nil || len(entries) > 0 || !info.IsDir() {
			t.Errorf("%s: %v %v %v", dir, entries, err, lerr)
		}
	}
	for _, name := range []string{"runner/_diag", "runner/.env", "runner/.runner", "runner/.credentials"} {
		if _, err := os.Lstat(b.path(name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	if b.read("runner/bin/Runner.Listener") != listenerScript {
		t.Error("the listener is not the distribution's")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("what a link pointed to is gone: %v", err)
	}
}

func TestCleanIsChecked(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		edit func(o *host.Options)
		do   func(b *bed)
		want string
	}{
		"no disk space": {func(o *host.Options) { o.MinimumFree = 1 << 62 }, func(*bed) {}, "MiB are free"},
		// As when the deletion takes longer than its limit: see tree.ErrBusy.
		"views that cannot be deleted": {
			func(o *host.Options) { o.Caches = []cache.Spec{goCache} }, func(b *bed) { b.write("caches/view.json/file", "", 0o644) }, "settle caches: discard caches",
		},
		"no distribution": {func(*host.Options) {}, func(b *bed) { b.check(os.RemoveAll(b.options.Distribution)) }, "renew runner"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, test.edit)
			test.do(b)
			p := b.clean(8).Cleaned
			if p.Phase != agent.PhaseFailed || p.Cause != lifecycle.CauseHost || !strings.Contains(p.Detail, test.want) {
				t.Errorf("cleaned: %+v", p)
			}
		})
	}
}

// A clean-up that was cut short is none.
func TestCleanCutShort(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.clean(8)
	b.write("state/tasks/clean.json", `{"assignment": 10, "attempt": 1}`, 0o600)
	b.check(os.Remove(b.path("state/tasks/clean.result")))
	b.reopen()
	if p := b.look().Cleaned; p.Phase != agent.PhaseNone {
		t.Errorf("cleaned: %+v", p)
	}
	if p := b.clean(10).Cleaned; p.Phase != agent.PhaseOK {
		t.Errorf("cleaned: %+v", p)
	}
}

func TestPowerOff(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.register()
	b.listen()
	left := process(t, b.id, "sleep", "1000")
	b.check(b.PowerOff(context.Background(), "test"))
	if !dead(left) || len(b.processes()) > 0 {
		t.Errorf("processes are left: %v", b.processes())
	}
}
