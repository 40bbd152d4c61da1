package snapshot_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/snapshot"
)

const example = "../../examples/snapshot.json"

func read(t testing.TB) policy.Snapshot {
	t.Helper()
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWrite: what is read and written again is the same file.
func TestWrite(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := snapshot.Write(&b, read(t)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != strings.ReplaceAll(string(text), "\r", "") {
		t.Errorf("written again it is another file:\n%s", &b)
	}
}

// TestDamage: each error says where it is.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(part map[string]any)
		want   string
	}{
		"a kind of a later time": {func(p map[string]any) { p["rows"].(map[string]any)["wish"] = []any{} }, `rows: "wish" is no kind of rows`},
		"a row twice": {func(p map[string]any) {
			rows := p["rows"].(map[string]any)
			rows["instance"] = append(rows["instance"].([]any), rows["instance"].([]any)[0])
		}, "rows.instance[6]: create instance"},
		"a row without a key": {func(p map[string]any) {
			p["rows"].(map[string]any)["instance"] = []any{map[string]any{"state": "idle"}}
		},
			"rows.instance[0]: it has no host_key"},
		"rows that are none":    {func(p map[string]any) { p["rows"] = 7 }, "rows of type"},
		"a report that is none": {func(p map[string]any) { p["reports"] = []any{"none"} }, "reports[0]: json"},
		"an event that is none": {func(p map[string]any) { p["events"] = []any{7} }, "events[0]: json"},
		"no pool":               {func(p map[string]any) { p["settings"] = map[string]any{} }, "at least one pool is required"},
		"a job pool without pool": {func(p map[string]any) {
			p["settings"].(map[string]any)["pools"] = []any{map[string]any{"name": "other"}}
		}, "job pool small: there is no pool of that name"},
		"a schedule that is wrong": {func(p map[string]any) { schedule(p)["cron"] = "often" }, `pool "default": cron: `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := read(t)
			var part map[string]any
			if err := json.Unmarshal(s.Fleet, &part); err != nil {
				t.Fatal(err)
			}
			test.change(part)
			var err error
			if s.Fleet, err = json.Marshal(part); err != nil {
				t.Fatal(err)
			}
			_, err = snapshot.Open(s)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasSuffix(err.Error(), "; the file is damaged: write it again with `controld snapshot`") {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// schedule gives the first pool a schedule.
func schedule(part map[string]any) map[string]any {
	warm := part["settings"].(map[string]any)["pools"].([]any)[0].(map[string]any)["warm"].(map[string]any)
	of := map[string]any{"cron": "* * * * *", "idleCount": 1}
	warm["schedules"] = []any{of}
	return of
}

// FuzzOpen: no file makes the command panic.
func FuzzOpen(f *testing.F) {
	f.Add(string(read(f).Fleet))
	f.Add(`{"settings": {"pools": [{"name": "a", "warm": {}}], "jobs": {}, "budgets": [{}], "prices": {}}, "rows": {"turns": [{}], "fleet_hold": [{}, {}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		s := policy.Snapshot{Now: read(t).Now, Fleet: json.RawMessage(text)}
		if o, err := snapshot.Open(s); err == nil && o.At != s.Now {
			t.Errorf("opened at %s", o.At)
		}
	})
}
