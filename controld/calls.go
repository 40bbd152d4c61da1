package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// callsMade counts the calls of this process by service, as reports have them: without those to the machine's own metadata. It is nil
// for a process that makes none.
func callsMade(calls *aws.Calls) func() []meter.Calls {
	if calls == nil {
		return nil
	}
	return func() []meter.Calls {
		byService := map[string]meter.Calls{}
		for call, n := range calls.Counts() {
			if call.Service == "imds" {
				continue
			}
			c := byService[call.Service]
			c.Service, c.Requests = call.Service, c.Requests+int64(n)
			byService[call.Service] = c
		}
		if c, ok := byService["dynamodb"]; ok {
			units := calls.Units()
			c.HalfReads, c.Writes = units.HalfReads, units.Writes
			byService["dynamodb"] = c
		}
		return slices.SortedFunc(maps.Values(byService), func(a, b meter.Calls) int { return strings.Compare(a.Service, b.Service) })
	}
}
