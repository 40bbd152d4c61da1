package template_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle/template"
)

func TestOutdated(t *testing.T) {
	for name, test := range map[string]struct {
		arch, had, current string
		want               bool
	}{
		"the same":                         {"x86_64", "7", "7", false},
		"older":                            {"x86_64", "7", "8", true},
		"older, by number and not by text": {"x86_64", "9", "10", true},
		"newer: an operator set the default back": {"x86_64", "8", "7", false},
		"no version of two, arm64":                {"arm64", "", "8/1", false},
		"not known of two, arm64":                 {"arm64", "7/1", "", false},
		"no version":                              {"x86_64", "", "8", false},
		"not known":                               {"x86_64", "7", "", false},
		"no number":                               {"x86_64", "seven", "8", false},
		"by no number":                            {"x86_64", "7", "eight", false},
		"only the other's, x86_64":                {"x86_64", "7/5", "7/6", false},
		"only the other's, arm64":                 {"arm64", "7/5", "8/5", false},
		"its own, x86_64":                         {"x86_64", "7/5", "8/5", true},
		"its own, arm64":                          {"arm64", "7/5", "7/6", true},
		"a second template beside it":             {"x86_64", "7", "7/1", false},
		"a template of its own, arm64":            {"arm64", "7", "8/1", true},
		"alone, arm64":                            {"arm64", "7", "8", true},
		"alone and the same, arm64":               {"arm64", "7", "7", false},
		"separators only":                         {"arm64", "/", "/", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := template.Outdated(test.arch, test.had, test.current); got != test.want {
				t.Errorf("%s from %q, now %q: outdated %v", test.arch, test.had, test.current, got)
			}
		})
	}
}
