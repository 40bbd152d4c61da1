//go:build soak

package awsfaults_test

import "github.com/remuda-ci/remuda/internal/awstest"

// runsOf an operation: each of its calls with every kind of fault, as the SDK
// tries once and as it tries again.
func runsOf(_, calls int) []run {
	var runs []run
	for nth := range calls {
		for _, kind := range awstest.Kinds {
			for _, tries := range triesOf {
				runs = append(runs, run{nth + 1, kind, tries})
			}
		}
	}
	return runs
}
