package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const plans = "../internal/policy/testdata/plan/"

// What plan prints for each of the snapshots is compared whole.
func TestPlanJSON(t *testing.T) {
	files, err := filepath.Glob(plans + "*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d snapshots: %v", len(files), err)
	}
	for _, file := range files {
		want, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		got := controld(t, "plan", "--snapshot", file, "--output", "json")
		if diff := cmp.Diff(result{stdout: string(want)}, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestPlanTable(t *testing.T) {
	const want = `INSTANCE  ACTION         REASON
i-o1      unmark_orphan  no orphan: GitHub, asked for runner 90, has it online and not busy
i-o2      terminate      an orphan that has no runner id
i-a1      keep           kept idle, as 1 of 1 for its owner
i-a2      mark_idle      idle for the first time: it goes if it still is in 2m0s
i-a3      keep           its agent says that it runs a job
i-x       keep           hold: it is tagged remuda:bypass-removal=true
i-b2      keep           young: it has had 3m0s, and the minimum running time is 5m0s
i-b1      keep           kept idle, as 1 of 1 for its owner
i-b3      mark_orphan    GitHub does not list it: it has had 6h40m0s, and the boot time is 5m0s
i-n       keep           left alone: it has no owner on whose list it could be
`
	file := plans + "a-day-of-many-owners.json"
	for _, args := range [][]string{{"plan", "--snapshot", file}, {"plan", "--snapshot", file, "--output", "table"}} {
		if diff := cmp.Diff(result{stdout: want}, controld(t, args...), cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%v (-want +got):\n%s", args, diff)
		}
	}
}

// The page for operators shows a snapshot and its plan.
func TestPlanOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	between := func(begin, end string) string {
		_, rest, found := strings.Cut(string(page), begin)
		text, _, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("the page has nothing between %q and %q", begin, end)
		}
		return text
	}
	fleet := write(t, "fleet.json", between("```json\n", "```"))
	want := result{stdout: between("$ controld plan --snapshot fleet.json\n", "```")}
	if diff := cmp.Diff(want, controld(t, "plan", "--snapshot", fleet), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("plan of the page (-want +got):\n%s", diff)
	}
}

// A plan is whole or not there.
func TestPlanErrors(t *testing.T) {
	wrong := write(t, "wrong.json", "{\n \"now\": \"2026-01-01T12:00:00Z\",\n \"policy\": {\"idle\": [{\"cron\": \"* * * * *\", \"time_zone\": \"Mars\", \"idle_count\": -1}]}\n}")
	tests := map[string]struct {
		args []string
		want result
	}{
		"no file named": {nil, result{code: 2,
			stderr: "controld: --snapshot is required\nusage: controld plan --snapshot FILE [--output json|table] (`controld plan --help` says more)\n"}},
		"no such output": {[]string{"--snapshot", wrong, "--output", "yaml"}, result{code: 2,
			stderr: "controld: --output \"yaml\" is neither table nor json\nusage: controld plan --snapshot FILE [--output json|table] (`controld plan --help` says more)\n"}},
		"no such file": {[]string{"--snapshot", wrong + ".none"}, result{code: 1,
			stderr: "controld: read snapshot: open " + wrong + ".none: no such file or directory\n"}},
		"a directory": {[]string{"--snapshot", filepath.Dir(wrong)}, result{code: 1,
			stderr: "controld: read snapshot: read " + filepath.Dir(wrong) + ": is a directory; name a file in it\n"}},
		"a wrong file": {[]string{"--snapshot", wrong, "--output", "json"}, result{code: 1, stderr: "controld: read snapshot " + wrong + ":\n" +
			"line 3, column 79: policy.idle[0].idle_count: -1 is negative\n" +
			"line 3, column 57: policy.idle[0].time_zone: \"Mars\" is no time zone; write a name of the IANA database, as Europe/Amsterdam\n"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := controld(t, append([]string{"plan"}, test.args...)...)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}
