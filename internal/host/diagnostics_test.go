package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
)

// TestDiagnosticsAreKept fills _diag as a run and a job of ill will do: the newest files are kept, bounded, readable by one user, and
// nothing that is not a file of _diag.
func TestDiagnosticsAreKept(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.register()
	secret := filepath.Join(t.TempDir(), "secret")
	b.check(os.WriteFile(secret, []byte("x"), 0o600))
	for i := range 30 {
		name := fmt.Sprintf("runner/_diag/Worker_%02d.log", i)
		b.write(name, fmt.Sprintf("log %d", i), 0o644)
		at := time.Now().Add(time.Duration(i-60) * time.Minute)
		b.check(os.Chtimes(b.path(name), at, at))
	}
	b.write("runner/_diag/Runner.log", strings.Repeat("x", 1<<20)+"the end", 0o644)
	b.check(os.Symlink(secret, b.path("runner/_diag/link")))
	b.check(syscall.Mkfifo(b.path("runner/_diag/pipe"), 0o644))
	b.write("runner/_diag/pages/page", "", 0o644)
	b.cleaned(8)

	entries, err := os.ReadDir(b.path("state/diag"))
	b.check(err)
	if len(entries) != 20 {
		t.Errorf("%d files are kept: %v", len(entries), entries)
	}
	for _, e := range entries {
		info, err := e.Info()
		b.check(err)
		if info.Mode() != 0o600 || info.Size() > 1<<20 || e.Name() < "Worker_11.log" && e.Name() != "Runner.log" {
			t.Errorf("%s: mode %s, %d bytes", e.Name(), info.Mode(), info.Size())
		}
	}
	if info, err := os.Stat(b.path("state/diag")); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("state/diag: %v, %v", info, err)
	}
	if end := b.read("state/diag/Runner.log"); !strings.HasSuffix(end, "xthe end") {
		t.Errorf("it ends with %q", end[len(end)-10:])
	}

	b.register() // a run without diagnostics leaves the last ones
	b.cleaned(10)
	if text := b.read("state/diag/Worker_29.log"); text != "log 29" {
		t.Errorf("kept: %q", text)
	}
	b.register()
	b.write("runner/_diag/Worker_other.log", "", 0o644)
	b.cleaned(12)
	if entries, err := os.ReadDir(b.path("state/diag")); err != nil || len(entries) != 1 {
		t.Errorf("of the next run: %v, %v", entries, err)
	}
}

// TestDiagnosticsElsewhere has a link in the place of _diag.
func TestDiagnosticsElsewhere(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.register()
	elsewhere := t.TempDir()
	b.check(os.WriteFile(filepath.Join(elsewhere, "secret"), []byte("x"), 0o600))
	b.check(os.Symlink(elsewhere, b.path("runner/_diag")))
	b.cleaned(8)
	if _, err := os.Stat(b.path("state/diag")); err == nil {
		t.Error("what _diag pointed to is kept")
	}
}

func (b *bed) cleaned(assignment int64) {
	b.Helper()
	if p := b.clean(assignment).Cleaned; p.Phase != agent.PhaseOK {
		b.Fatalf("cleaned: %+v", p)
	}
}
