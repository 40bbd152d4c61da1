//go:build !soak

package awsfaults_test

import (
	"slices"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// callsAtMost of an operation fail in turn. Of the long series, which are reads
// that wait and rows that are written one after the other, it is a sample: the
// first of them, and others at even distances. `-tags soak` takes all.
const callsAtMost = 5

// runsOf the n-th operation, which is called so many times: each call once, or
// often enough for every kind of fault, with the kinds and the tries in turn.
func runsOf(n, calls int) []run {
	var runs []run
	for i, nth := range sample(calls) {
		runs = append(runs, run{nth: nth, kind: awstest.Kinds[i%len(awstest.Kinds)], tries: triesOf[(n+i/len(awstest.Kinds))%len(triesOf)]})
	}
	return runs
}

func sample(calls int) []int {
	var nths []int
	switch kinds := len(awstest.Kinds); {
	case calls < kinds:
		for i := range kinds {
			nths = append(nths, 1+i%calls)
		}
	default:
		most := min(calls, callsAtMost)
		for i := range most {
			nths = append(nths, 1+i*calls/most)
		}
	}
	return slices.Clip(nths)
}
