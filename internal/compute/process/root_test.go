package process_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestANewRootVolume has nothing of the old one, and nothing of the old host runs on; once for each token, also for a replica that goes on where
// another was cut short.
func TestANewRootVolume(t *testing.T) {
	dir := root(t)
	c := open(t, dir, starts+stays, nil)
	id, hostDir := launch(t, c, dir)
	first := pids(t, filepath.Join(hostDir, "agent.pids"), 1)[0]
	leave := func(name string) string {
		t.Helper()
		path := filepath.Join(hostDir, name, "file")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gone := func(path string) bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	}
	old := leave("state")
	if _, err := c.ReplaceRoot(t.Context(), id, "one"); err != nil {
		t.Fatal(err)
	}
	second := pids(t, filepath.Join(hostDir, "agent.pids"), 1)[0]
	if !gone(old) || alive(first) || second == first || state(t, c, id) != lifecycle.MachineRunning {
		t.Errorf("the old file is gone: %v, the old agent lives: %v, and the host is %s", gone(old), alive(first), state(t, c, id))
	}
	kept := leave("state")
	if _, err := open(t, dir, stays, nil).ReplaceRoot(t.Context(), id, "one"); err != nil || gone(kept) {
		t.Errorf("the same token: %v, its file is gone: %v", err, gone(kept))
	}
	if err := c.Stop(t.Context(), id, false); err != nil { // as a replica that was cut short leaves it
		t.Fatal(err)
	}
	if _, err := c.ReplaceRoot(t.Context(), id, "two"); err != nil || !gone(kept) {
		t.Errorf("after a crash: %v, the file is gone: %v", err, gone(kept))
	}
	pids(t, filepath.Join(hostDir, "agent.pids"), 1)
	tasks, err := c.RootTasks(t.Context(), []string{id})
	if err != nil || len(tasks) != 2 {
		t.Errorf("tasks: %v, %v", tasks, err)
	}
}
