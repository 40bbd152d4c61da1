package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/policy"
)

// What a file leaves out has its defaults, and null is as left out.
func TestSnapshotDefaults(t *testing.T) {
	s, err := policy.ParseSnapshot([]byte(`{"now": "2026-01-01T13:00:00.5+01:00", "policy": null, "instances": [
		{"instance_id": "i-1", "state": "running", "agent_busy": false, "github_runner_id": 9007199254740993, "launch_time": null}],
		"runners": [{"id": 9007199254740993, "name": "remuda-1-i-1", "owner": "acme", "status": "offline"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	no := false
	want := policy.Snapshot{
		Now: time.Date(2026, 1, 1, 12, 0, 0, 500_000_000, time.UTC),
		Instances: []policy.SnapshotInstance{{State: "running",
			Candidate: policy.Candidate{InstanceID: "i-1", AgentBusy: &no, RunnerID: 1<<53 + 1}}},
		Runners: []policy.SnapshotRunner{{Listed: true, Runner: policy.Runner{ID: 1<<53 + 1, Name: "remuda-1-i-1", Owner: "acme", Status: "offline"}}},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

// The rest of the fleet goes through as it is.
func TestSnapshotWithAFleet(t *testing.T) {
	s, err := policy.ParseSnapshot([]byte(`{"format": 2, "now": "2026-01-01T12:00:00Z", "fleet": {"rows": {"instance": [1]}}}`))
	if err != nil || string(s.Fleet) != `{"rows": {"instance": [1]}}` {
		t.Fatalf("%s, %v", s.Fleet, err)
	}
	data, err := json.Marshal(s)
	if err != nil || !strings.HasPrefix(string(data), `{"format":2,"now"`) {
		t.Fatalf("%s, %v", data, err)
	}
	if again, err := policy.ParseSnapshot(data); err != nil || string(again.Fleet) != `{"rows":{"instance":[1]}}` {
		t.Errorf("%s, %v", again.Fleet, err)
	}
}

func TestWrongSnapshots(t *testing.T) {
	const (
		empty   = "line 1, column 1: it is empty; write a snapshot, as `controld snapshot` does"
		notJSON = "line 1, column 1: it is not JSON; write one JSON object, as `controld snapshot` does (YAML is not read)"
	)
	tests := map[string]struct{ text, want string }{
		"empty":              {``, empty},
		"blank":              {"\n \n", `line 1, column 1: it is empty; write a snapshot, as ` + "`controld snapshot` does"},
		"cut off":            {"{\"now\": \"2026-01-01T12:00:00Z\",\n \"policy\": {", `line 2, column 13: it ends too early; the rest of it is missing, so write it again`},
		"cut off in a text":  {"{\"now\": \"2026-", `line 1, column 15: it ends too early; the rest of it is missing, so write it again`},
		"YAML":               {"now: 2026", notJSON},
		"YAML with a list":   {"- now: 2026", notJSON},
		"YAML with a mark":   {"---\nnow: 2026", notJSON},
		"a mark before it":   {"\ufeff{}", `line 1, column 1: it begins with a byte order mark; save it as UTF-8 without one`},
		"UTF-16":             {"\xff\xfe{\x00}\x00", `line 1, column 1: it is not UTF-8; save it as that`},
		"a comma too many":   {`{"instances": [1,]}`, `line 1, column 18: invalid character ']' looking for beginning of value`},
		"two documents":      {`{} {}`, `line 1, column 4: something follows its end; write one JSON object alone`},
		"something after it": {"{}\n!", `line 2, column 1: something follows its end; write one JSON object alone`},
		"not UTF-8":          {"{\"now\": \"\xff\"}", `line 1, column 1: it is not UTF-8; save it as that`},
		"a list":             {`[]`, `line 1, column 1: is a list; write an object`},
		"null":               {`null`, `line 1, column 1: is null; write an object`},
		"deep":               {`{"now": "2026-01-01T12:00:00Z", "policy": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, `line 1, column 43: policy: is a list; write an object`},
		"too deep":           {strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), `line 1, column 10001: invalid character '[' exceeded max depth`},
		"of a newer controld": {`{"format": 3, "future": true, "now": 7}`,
			"line 1, column 12: format: a newer controld wrote this snapshot, in format 3, and formats up to 2 are read here; use a remuda and a controld of its version"},
		"no format":              {`{"now": "2026-01-01T12:00:00Z", "format": 0}`, `line 1, column 43: format: 0 is less than 1`},
		"a fleet that is none":   {`{"now": "2026-01-01T12:00:00Z", "fleet": []}`, `line 1, column 42: fleet: is a list; write an object`},
		"nothing":                {`{}`, `line 1, column 1: now: is missing`},
		"no time now":            {`{"now": ""}`, `line 1, column 9: now: is missing`},
		"a day":                  {`{"now": "2026-01-01"}`, `line 1, column 9: now: "2026-01-01" is no time; write it as 2026-01-01T12:00:00Z`},
		"a year too many":        {`{"now": "9999-12-31T23:30:00-01:00"}`, `line 1, column 9: now: "9999-12-31T23:30:00-01:00" is no time; write it as 2026-01-01T12:00:00Z`},
		"a year too few":         {`{"now": "0000-12-31T23:30:00Z"}`, `line 1, column 9: now: "0000-12-31T23:30:00Z" is no time; write it as 2026-01-01T12:00:00Z`},
		"a name twice":           {`{"now": "2026-01-01T12:00:00Z", "now": 5}`, `line 1, column 38: now is given twice; remove one`},
		"a name of a host twice": {instanceOf(`"instance_id": "i-1", "state": "running", "\u0073tate": "stopped"`), `instances[0].state is given twice; remove one`},
		"unknown names": {`{"now": "2026-01-01T12:00:00Z", "Policy": {}, "a b\n": 1}`, `line 1, column 43: ["Policy"]: means nothing here; there are format, now, policy, instances, runners, fleet
line 1, column 56: ["a b\n"]: means nothing here; there are format, now, policy, instances, runners, fleet`},

		"types of the policy": {policyOf(`{"minimum_running_time_minutes": "5", "boot_time_minutes": {"linux": true, "widows": 3, "windows": []}, "idle_confirmation_seconds": null, "idle": {}}`),
			`policy.minimum_running_time_minutes: is a text; write a number
policy.boot_time_minutes.widows: means nothing here; there are linux, windows, macos
policy.boot_time_minutes.linux: is a boolean; write a number
policy.boot_time_minutes.windows: is a list; write a number
policy.idle: is an object; write a list`},
		"numbers of the policy": {policyOf(`{"minimum_running_time_minutes": -1, "boot_time_minutes": {"linux": -0.5, "windows": 1e99}, "idle_confirmation_seconds": 1e999}`),
			`policy.minimum_running_time_minutes: -1 is negative
policy.boot_time_minutes.linux: -0.5 is negative
policy.boot_time_minutes.windows: 1e99 is more than 52560000
policy.idle_confirmation_seconds: 1e999 is more than 3153600000`},
		"a policy that is no object": {policyOf(`5`), `policy: is a number; write an object`},

		"a negative idle count": {periodOf(`"cron": "* * * * *", "idle_count": -2`), `policy.idle[0].idle_count: -2 is negative`},
		"half an idle count":    {periodOf(`"cron": "* * * * *", "idle_count": 1.5`), `policy.idle[0].idle_count: 1.5 is no whole number, or too large a one`},
		"a huge idle count":     {periodOf(`"cron": "* * * * *", "idle_count": 4000000000`), `policy.idle[0].idle_count: 4000000000 is more hosts than a fleet can have`},
		"a larger idle count":   {periodOf(`"cron": "* * * * *", "idle_count": 99999999999999999999`), `policy.idle[0].idle_count: 99999999999999999999 is no whole number, or too large a one`},
		"an unknown zone":       {periodOf(`"cron": "* * * * *", "time_zone": "Mars/Olympus"`), `policy.idle[0].time_zone: "Mars/Olympus" is no time zone; write a name of the IANA database, as Europe/Amsterdam`},
		"an unknown eviction":   {periodOf(`"cron": "* * * * *", "eviction_strategy": "oldest"`), `policy.idle[0].eviction_strategy: "oldest" is none of oldest_first, newest_first`},
		"no cron":               {periodOf(`"idle_count": 1`), `policy.idle[0].cron: is missing`},
		"a wrong cron, and more": {periodOf(`"cron": "* * 32 * *", "idle_count": true, "time_zone": 1`), `policy.idle[0].idle_count: is a boolean; write a number
policy.idle[0].time_zone: is a number; write a text
policy.idle[0].cron: day of month 32: must be 1 to 31`},
		"a wrong cron and a wrong zone": {periodOf(`"cron": "61 * * * *", "time_zone": "Mars/Olympus"`), `policy.idle[0].cron: minute 61: must be 0 to 59
policy.idle[0].time_zone: "Mars/Olympus" is no time zone; write a name of the IANA database, as Europe/Amsterdam`},
		"30 February": {periodOf(`"cron": "* * 30 2 *"`), `policy.idle[0].cron: "* * 30 2 *" never holds: no such day comes`},

		"no instance": {`{"now": "2026-01-01T12:00:00Z", "instances": [5, null], "runners": ["x"]}`, `instances[0]: is a number; write an object
instances[1].state: is missing
instances[1].instance_id: is missing
runners[0]: is a text; write an object`},
		"nothing of an instance": {instanceOf(``), `instances[0].state: is missing
instances[0].instance_id: is missing`},
		"types of an instance": {instanceOf(`"instance_id": 1, "launch_time": 2, "owner": [], "scope": {}, "os": 5, "state": true, "orphan": "yes", "github_runner_id": false,
			"bypass_removal": 1, "idle_detected_at": 3, "agent_busy": "no", "agent_seen_at": 4`),
			`instances[0].state: is a boolean; write a text
instances[0].instance_id: is a number; write a text
instances[0].launch_time: is a number; write a text
instances[0].owner: is a list; write a text
instances[0].scope: is an object; write a text
instances[0].os: is a number; write a text
instances[0].orphan: is a text; write true or false
instances[0].github_runner_id: is a boolean; write a number
instances[0].bypass_removal: is a number; write true or false
instances[0].agent_seen_at: is a number; write a text
instances[0].agent_busy: is a text; write true or false
instances[0].idle_detected_at: is a number; write a text`},
		"values of an instance": {instanceOf(`"instance_id": "i 1", "state": "running", "launch_time": "noon", "github_runner_id": "seven", "agent_seen_at": "2026-02-30T00:00:00Z"`),
			`instances[0].launch_time: "noon" is no time; write it as 2026-01-01T12:00:00Z
instances[0].github_runner_id: "seven" is no id of a runner; write its number, or "" if it has none
instances[0].agent_seen_at: "2026-02-30T00:00:00Z" is no time; write it as 2026-01-01T12:00:00Z
instances[0].instance_id: "i 1" is no id of an instance: letters, digits and marks, at most 128`},
		"a negative id":   {instanceOf(`"instance_id": "i-1", "state": "running", "github_runner_id": "-7"`), `instances[0].github_runner_id: "-7" is no id of a runner; write its number, or "" if it has none`},
		"a negative id 2": {instanceOf(`"instance_id": "i-1", "state": "running", "github_runner_id": -7`), `instances[0].github_runner_id: -7 is negative`},
		"words that there are not": {instanceOf(`"instance_id": "i-1", "state": "Running", "os": "plan9", "scope": "organisation"`),
			`instances[0].state: "Running" is none of pending, running, shutting-down, terminated, stopping, stopped
instances[0].scope: "organisation" is none of org, repo
instances[0].os: "plan9" is none of linux, windows, macos`},
		"an instance twice": {instanceOf(`"instance_id": "i-1", "state": "running"}, {"instance_id": "i-1", "state": "stopped"`),
			`instances[1]: "i-1" was given before, as instances[0]`},

		"nothing of a runner": {runnerOf(``), `runners[0].name: is missing
runners[0].owner: is missing
runners[0].status: is missing
runners[0].id: is missing`},
		"values of a runner": {runnerOf(`"id": 0, "name": "n", "owner": "acme", "status": "Online", "busy": 1, "listed": null, "offline_since": "?"`),
			`runners[0].id: 0 is less than 1
runners[0].busy: is a number; write true or false
runners[0].offline_since: "?" is no time; write it as 2026-01-01T12:00:00Z
runners[0].status: "Online" is none of online, offline`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := policy.ParseSnapshot([]byte(test.text))
			if err == nil {
				t.Fatal("no error")
			}
			got := err.Error()
			if !strings.HasPrefix(test.want, "line") { // the places have cases of their own
				lines := strings.Split(got, "\n")
				for i, line := range lines {
					_, lines[i], _ = strings.Cut(line, ": ")
				}
				got = strings.Join(lines, "\n")
			}
			if diff := cmp.Diff(strings.Split(test.want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func policyOf(text string) string {
	return `{"now": "2026-01-01T12:00:00Z", "policy": ` + text + `}`
}

func periodOf(text string) string { return policyOf(`{"idle": [{` + text + `}]}`) }

func instanceOf(text string) string {
	return `{"now": "2026-01-01T12:00:00Z", "instances": [{` + text + `}]}`
}

func runnerOf(text string) string {
	return `{"now": "2026-01-01T12:00:00Z", "runners": [{` + text + `}]}`
}

// A place is where the value begins that is wrong.
func TestPlaceInSnapshot(t *testing.T) {
	_, err := policy.ParseSnapshot([]byte("{\n  \"now\": \"2026-01-01T12:00:00Z\",\n  \"policy\": {\n    \"idle\"\t:\n\n      [{\"cron\": \"* * * * *\", \"idle_count\":-1}]\n  }\n}"))
	if want := "line 6, column 43: policy.idle[0].idle_count: -1 is negative"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// What is wrong with every host is said of some.
func TestManyProblems(t *testing.T) {
	_, err := policy.ParseSnapshot([]byte(`{"now": "2026-01-01T12:00:00Z", "instances": [` + strings.Repeat(`{}, `, 50) + `{}]}`))
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 21 || lines[20] != "and more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestSnapshotThatIsTooLarge(t *testing.T) {
	_, err := policy.ParseSnapshot(make([]byte, policy.MaxSnapshot+1))
	if want := fmt.Sprintf("a snapshot may have %d bytes, and this one has more", policy.MaxSnapshot); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Whatever is read is JSON, has one verdict for each of its machines, and is
// written as it is read again.
func FuzzParseSnapshot(f *testing.F) {
	files, err := filepath.Glob("testdata/plan/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := policy.ParseSnapshot(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("read, and no JSON: %q", data)
		}
		plan := s.Plan()
		seen := map[string]bool{}
		for _, v := range plan {
			if seen[v.InstanceID] || v.Reason == "" {
				t.Fatalf("a second verdict, or one without a reason: %+v", v)
			}
			seen[v.InstanceID] = true
		}
		written, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := policy.ParseSnapshot(written)
		if err != nil {
			t.Fatalf("%s\nwritten as %s\n%v", data, written, err)
		}
		if diff := cmp.Diff(plan, again.Plan()); diff != "" {
			t.Fatalf("plan (-read +written and read):\n%s", diff)
		}
	})
}

// Once as much is wrong as is said, the rest is not read: a list of millions of items
// that are none takes a moment.
func TestWhatFollowsManyProblemsIsNotRead(t *testing.T) {
	for name, document := range map[string]string{
		"items":  `{"instances": [` + strings.Repeat(`0,`, 1<<20) + `0]}`,
		"fields": `{` + strings.Repeat(`"a":1,`, 1<<20) + `"a":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			allocated := testing.AllocsPerRun(1, func() {
				if _, err := policy.ParseSnapshot([]byte(document)); err == nil || !strings.HasSuffix(err.Error(), "\nand more") {
					t.Errorf("%v, want many problems and more", err)
				}
			})
			if allocated > 10_000 {
				t.Errorf("%d items took %.0f allocations", 1<<20, allocated)
			}
		})
	}
}

// Brackets in a text are text, wherever it stands.
func TestBracketsInTexts(t *testing.T) {
	s, err := policy.ParseSnapshot([]byte(`{"fleet": {"a": "]}", "b": ["{[\"]"]}, "now": "2026-01-01T12:00:00Z",
		"instances": [{"instance_id": "}]", "state": "running"}, {"instance_id": "i-2", "state": "running"}]}`))
	if err != nil || len(s.Instances) != 2 || s.Instances[0].InstanceID != "}]" || string(s.Fleet) != `{"a": "]}", "b": ["{[\"]"]}` {
		t.Errorf("%+v, %v", s, err)
	}
}

// What is just within the bounds is read.
func TestSnapshotWithinItsBounds(t *testing.T) {
	text := func(now, period, instance string) string {
		return fmt.Sprintf(`{"now": %q, "policy": {"idle_confirmation_seconds": %s, "idle": [{"cron": "* * * * *", "idle_count": 2147483647}]},
			"instances": [{"instance_id": "i-1", "state": "running", "github_runner_id": %s}]}`, now, period, instance)
	}
	for name, data := range map[string]string{
		"the first year":       text("0001-01-01T00:00:01Z", "0", "1"),
		"the last year":        text("9999-12-31T23:59:59Z", "0", "1"),
		"the longest duration": text("2026-01-01T12:00:00Z", "3153600000", "1"),
		"an id as a text":      text("2026-01-01T12:00:00Z", "0", `"1"`),
		"the most bytes":       strings.Repeat(" ", policy.MaxSnapshot-len(text("2026-01-01T12:00:00Z", "0", "1"))) + text("2026-01-01T12:00:00Z", "0", "1"),
	} {
		if _, err := policy.ParseSnapshot([]byte(data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range map[string]string{
		"no time at all":          text("0001-01-01T00:00:00Z", "0", "1"),
		"longer than the longest": text("2026-01-01T12:00:00Z", "3153600001", "1"),
	} {
		if _, err := policy.ParseSnapshot([]byte(data)); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}
