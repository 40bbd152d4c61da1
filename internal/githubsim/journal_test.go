package githubsim

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lines(t *testing.T, dir string) map[string]string {
	t.Helper()
	j, rows, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	out := map[string]string{}
	for k, v := range rows {
		out[k.kind+k.id] = string(v)
	}
	return out
}

func TestJournalKeepsTheLastOfEachRow(t *testing.T) {
	dir := t.TempDir()
	j, _, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []entry{{"a", "1", json.RawMessage("1")}, {"a", "2", json.RawMessage("1")}, {"a", "1", json.RawMessage("2")}, {"a", "2", json.RawMessage("null")}} {
		if err := j.write([]entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if d := cmp.Diff(map[string]string{"a1": "2"}, lines(t, dir)); d != "" {
			t.Error(d)
		}
	}
}

func TestJournalCompactsWhileItRuns(t *testing.T) {
	dir := t.TempDir()
	j, _, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	j.limit = 100
	for range 50 {
		if err := j.write([]entry{{"a", "1", json.RawMessage(`"row"`)}}); err != nil {
			t.Fatal(err)
		}
		j.limit = min(j.limit, j.size+100)
	}
	if j.size > 200 {
		t.Errorf("%d bytes", j.size)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"a1": `"row"`}, lines(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestJournalAfterAKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.jsonl")
	whole := `{"kind":"a","id":"1","value":1}` + "\n"
	if err := os.WriteFile(path, []byte(whole+`{"kind":"a","id":"2","val`), 0o600); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"a1": "1"}, lines(t, dir)); d != "" {
		t.Error(d)
	}
	if err := os.WriteFile(path, []byte("nonsense\n"+whole), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openJournal(dir); err == nil || !strings.Contains(err.Error(), "journal.jsonl line 1") {
		t.Errorf("a corrupt line: %v", err)
	}
}

func TestFullDiskIsToldAndLosesNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := New(Options{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	good := s.journal.file
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	s.mu.Lock()
	s.journal.file = full
	s.mu.Unlock()
	err = s.change(func() error { s.put(kindHook, 0, hook{Target: "http://kept"}); return nil })
	if err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("%v", err)
	}
	s.mu.Lock()
	s.journal.file = good
	s.mu.Unlock()
	if err := errors.Join(s.change(func() error { return nil }), s.Close()); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, dir); !strings.Contains(got["hook0"], "http://kept") {
		t.Errorf("%v", got)
	}
}

func TestNewIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"no directory": "", "a file in the way": file} {
		if _, err := New(Options{StateDir: dir}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOldRunsAreForgotten(t *testing.T) {
	s, err := New(Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.maxRuns = 5
	for id := int64(1); id <= 6; id++ {
		err := s.change(func() error {
			r, err := s.startRun("a/b", id, "on: push\njobs:\n  j: {runs-on: x, steps: [{run: x}]}\n", origin{})
			if err == nil && id != 1 { // the first one is not completed and stays
				err = s.cancelRun(r)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(s.runs) != 5 || len(s.jobs) != 5 || s.runs[1] == nil || s.runs[2] != nil || s.runs[3] == nil {
		t.Errorf("%d runs, %d jobs; 1: %v, 2: %v, 3: %v", len(s.runs), len(s.jobs), s.runs[1] != nil, s.runs[2] != nil, s.runs[3] != nil)
	}
}
