package journal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lines(t *testing.T, dir string) map[string]string {
	t.Helper()
	j, rows, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	out := map[string]string{}
	for k, v := range rows {
		out[k.Kind+k.ID] = string(v)
	}
	return out
}

func TestJournalKeepsTheLastOfEachRow(t *testing.T) {
	dir := t.TempDir()
	j, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{{"a", "1", json.RawMessage("1")}, {"a", "2", json.RawMessage("1")}, {"a", "1", json.RawMessage("2")}, {"a", "2", json.RawMessage("null")}} {
		if err := j.Write([]Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
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
	j, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	j.limit = 100
	for range 50 {
		if err := j.Write([]Entry{{"a", "1", json.RawMessage(`"row"`)}}); err != nil {
			t.Fatal(err)
		}
		j.limit = min(j.limit, j.size+100)
	}
	if j.size > 200 {
		t.Errorf("%d bytes", j.size)
	}
	if err := j.Close(); err != nil {
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
	if _, _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "journal.jsonl line 1") {
		t.Errorf("a corrupt line: %v", err)
	}
}
