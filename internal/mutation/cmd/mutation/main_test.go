package main

import (
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// TestRefused: arguments that leave nothing to try end in an error, and not in a score of 100 %.
func TestRefused(t *testing.T) {
	t.Parallel()
	testrun.Fresh() // go list reads what is not in this package
	for args, want := range map[string]string{
		"":                        "name packages",
		"-output=csv .":           `-output is table or json, and not "csv"`,
		"-sample=-1 .":            "a sample of -1 mutants",
		"-match=of-another-day .": `look at MATCH, since "of-another-day" matches none`,
	} {
		if err := run(t.Context(), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", args, err, want)
		}
	}
}
