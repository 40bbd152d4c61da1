package dynamo_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// operationsOf are the operations that the permissions allow, each once.
func operationsOf(permissions []aws.Permission) []string {
	var names []string
	for _, p := range permissions {
		_, operation, _ := strings.Cut(p.Action, ":")
		names = append(names, operation)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func ofRole(role aws.Role) []aws.Permission {
	return slices.DeleteFunc(dynamo.Actions(), func(p aws.Permission) bool { return p.Role != role })
}

// TestPoliciesNameEveryTable: policies name tables one by one, so that a table that they do not know would be denied.
func TestPoliciesNameEveryTable(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	w, _ := ensuring(t)
	changes, err := w.Ensure(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	var made []aws.Table
	for _, c := range changes {
		made = append(made, aws.Table{Name: strings.TrimPrefix(c.Name, "remuda-"), Indexed: strings.Contains(c.Detail, ", index ")})
	}
	if diff := cmp.Diff(aws.Tables, made); diff != "" {
		t.Errorf("tables (-of the policies +made):\n%s", diff)
	}
}

// TestActions: each party calls all that it may, and nothing else.
func TestActions(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	w.create(t, pooledRecord("a"))
	called := func(do func()) []string {
		before := len(w.operations())
		do()
		names := slices.Sorted(slices.Values(w.operations()[before:]))
		return slices.Compact(names)
	}
	host := called(func() {
		if _, _, err := w.ForHost("a").Record(t.Context(), false); err != nil {
			t.Error(err)
		}
		if err := w.ForHost("a").PutReport(t.Context(), lifecycle.Report{}); err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff(operationsOf(ofRole(aws.RoleHost)), host); diff != "" {
		t.Errorf("calls of a host (-allowed +made):\n%s", diff)
	}
	controld := called(func() {
		for name, call := range methods(w.Store) {
			if !strings.Contains(name, "HostView") {
				_ = call(t.Context()) // its rows need not be there
			}
		}
		if err := w.AddEvents(t.Context(), []lifecycle.Event{newEvent("of a run"), {At: began}}); err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff(operationsOf(ofRole(aws.RoleControld)), controld); diff != "" {
		t.Errorf("calls of controld (-allowed +made):\n%s", diff)
	}
}
