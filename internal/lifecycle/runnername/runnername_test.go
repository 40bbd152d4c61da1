package runnername_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		instance   string
		assignment int64
		ok         bool
	}{
		"remuda-12-i-0123abcd": {"i-0123abcd", 12, true},
		"remuda-0-host":        {"host", 0, true},
		"remuda-x-i-1":         {"i-1", 0, false},
		"remuda-12":            {"", 12, false},
		"ours-12-i-1":          {"", 0, false},
		"12-i-1":               {"", 12, false},
		"":                     {"", 0, false},
	} {
		instance, gotInstance := want.instance, runnername.InstanceOf(name)
		assignment, ok := runnername.AssignmentOf(name)
		if gotInstance != instance || ok != want.ok || ok && assignment != want.assignment {
			t.Errorf("%q: host %q, assignment %d (%t), want %+v", name, gotInstance, assignment, ok, want)
		}
	}
}
