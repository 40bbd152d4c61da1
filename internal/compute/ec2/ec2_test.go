package ec2_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/compute/computetest"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
)

func TestConformance(t *testing.T) {
	computetest.Run(t, func(t *testing.T, capacity computetest.Capacity) computetest.Cloud {
		w := newWorld(t)
		var limits []ec2gap.Limit
		for _, pattern := range slices.Sorted(maps.Keys(capacity)) {
			limits = append(limits, ec2gap.Limit{Types: pattern, Most: capacity[pattern]})
		}
		w.SetLimits(limits...)
		o := w.options()
		for _, size := range []int{16, 20, 50} { // the suite's orders name version 3
			o = pool(o, func(p *ec2.Pool) { p.RootVolumeGiB = size })
			w.ready(t, o)
		}
		return computetest.Cloud{First: w.open(t, o), Second: w.open(t, o), Boot: func(string) {}, Tag: func(id, value string) { w.tag(t, id, ec2.TagBypass, value) }}
	})
}
