package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func stateFile(t *testing.T) host.StateFile {
	return host.StateFile{
		Path: filepath.Join(t.TempDir(), "agent.json"),
		Now:  func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) },
	}
}

func TestStateFile(t *testing.T) {
	t.Parallel()
	f := stateFile(t)
	if m, err := f.Load(); err != nil || m.Record != nil {
		t.Errorf("load of nothing: %+v, %v", m, err)
	}
	want := agent.Memory{
		BootID: "boot", StartedAt: f.Now(), ClockOffset: time.Minute, Refused: "9", Restarts: 2,
		Record: &lifecycle.Record{HostKey: "i-1", Version: 3, Assignment: 2, MaxRuntime: time.Hour, Threshold: f.Now()},
	}
	for range 2 {
		if err := f.Save(want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loaded (-saved +loaded):\n%s", diff)
	}
	if entries, _ := os.ReadDir(filepath.Dir(f.Path)); len(entries) != 1 {
		t.Errorf("files: %v", entries)
	}
}

func TestDamagedStateFile(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"cut": `{"bootId": "b`, "empty": "", "binary": "\x00\xff", "another type": `{"restarts": "many"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := stateFile(t)
			if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := f.Load()
			aside := f.Path + ".damaged-20260101T120000Z"
			if err == nil || !strings.Contains(err.Error(), aside) || m != (agent.Memory{}) {
				t.Errorf("load: %+v, %v", m, err)
			}
			if kept, err := os.ReadFile(aside); err != nil || string(kept) != text {
				t.Errorf("kept aside: %q, %v", kept, err)
			}
			if _, err := f.Load(); err != nil {
				t.Errorf("second load: %v", err)
			}
		})
	}
}

// A directory cannot be replaced by a file, as a disk that is read-only cannot.
func TestStateFileThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	f := stateFile(t)
	if err := os.MkdirAll(filepath.Join(f.Path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(); err == nil {
		t.Error("load: no error")
	}
	if err := f.Save(agent.Memory{}); err == nil || !strings.Contains(err.Error(), "save agent state: ") {
		t.Errorf("save: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(f.Path)); len(entries) != 1 {
		t.Errorf("a failed save left files: %v", entries)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := host.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Lock(path); !errors.Is(err, host.ErrInUse) {
		t.Errorf("second lock: %v", err)
	}
	first.Close()
	again, err := host.Lock(path)
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	again.Close()
	if _, err := host.Lock(filepath.Join(path, "below-a-file")); err == nil || errors.Is(err, host.ErrInUse) {
		t.Errorf("lock that cannot be made: %v", err)
	}
}
