//go:build !soak

package awsfaults_test

import "github.com/remuda-ci/remuda/internal/awstest"

// runsOf the n-th operation, which is called so many times: each call fails once,
// with the kinds and the tries in turn, and those of a short series more than
// once, so that every operation meets every kind. `-tags soak` has every call
// meet every kind.
func runsOf(n, calls int) []run {
	var runs []run
	for i := range max(calls, len(awstest.Kinds)) {
		runs = append(runs, run{nth: 1 + i%calls, kind: awstest.Kinds[i%len(awstest.Kinds)], tries: triesOf[(n+i/len(awstest.Kinds))%len(triesOf)]})
	}
	return runs
}
