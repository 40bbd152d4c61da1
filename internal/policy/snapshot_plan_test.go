package policy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

var updatePlans = flag.Bool("update-plans", false, "write testdata/plan/*.golden")

// decision is how `controld plan --output json` says a verdict.
type decision struct {
	InstanceID string           `json:"instance_id"`
	Action     lifecycle.Action `json:"action"`
	Reason     string           `json:"reason"`
}

func decisions(verdicts []policy.HostVerdict) []decision {
	ds := []decision{}
	for _, v := range verdicts {
		ds = append(ds, decision{v.InstanceID, v.Action, v.Reason})
	}
	return ds
}

// TestPlan plans each snapshot of testdata/plan. Those whose names begin with
// "table" are the rows of the table of scale-down in docs/policies.md.
func TestPlan(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*.json")
	if err != nil || len(files) < 80 {
		t.Fatalf("%d snapshots (%v), which is not all", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".json")
		t.Run(filepath.Base(name), func(t *testing.T) {
			got := decisions(readSnapshot(t, file).Plan())
			if *updatePlans {
				writePlan(t, name+".golden", got)
			}
			golden, err := os.ReadFile(name + ".golden")
			if err != nil {
				t.Fatal(err)
			}
			var want []decision
			if err := json.Unmarshal(golden, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("plan differs; review, then go test -update-plans (-want +got):\n%s", diff)
			}
		})
	}
}

func readSnapshot(t *testing.T, file string) policy.Snapshot {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.ParseSnapshot(data)
	if err != nil {
		t.Fatalf("parse %s:\n%v", file, err)
	}
	return s
}

func writePlan(t *testing.T, file string, plan []decision) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(plan); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What is written is read as the same, and decided as the same: a fleet can be
// replayed elsewhere.
func TestSnapshotIsReadAsItWasWritten(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		s := readSnapshot(t, file)
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := policy.ParseSnapshot(data)
		if err != nil {
			t.Fatalf("%s, written as %s:\n%v", file, data, err)
		}
		if diff := cmp.Diff(s.Plan(), again.Plan()); diff != "" {
			t.Errorf("%s: plan (-first +again):\n%s", file, diff)
		}
		twice, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(data), string(twice)); diff != "" {
			t.Errorf("%s: written (-first +again):\n%s", file, diff)
		}
	}
}
