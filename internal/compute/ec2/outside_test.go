package ec2_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestOutside: types that the requirements of a pool leave out are refused without a question to EC2, with what is allowed.
func TestOutside(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	bursts := o.Pools["default"]
	bursts.Burstable = true
	o.Pools = map[string]ec2.Pool{"default": o.Pools["default"], "bursts": bursts}
	c := w.open(t, o)
	const (
		metal = "bare metal"
		burst = "; burstable types, which need burstable: true"
		gpu   = "; types with accelerators, whose family the pool's instance_types must name"
	)
	for _, test := range []struct {
		name, pool      string
		request, allows []string
		why             string
	}{
		{"any", "default", nil, nil, ""},
		{"ordinary", "default", []string{"c*", "m*", "r*"}, nil, ""},
		{"of the pool", "default", []string{"c6i.*"}, []string{"c*"}, ""},
		{"one of several", "default", []string{"g5.*", "c6i.*"}, []string{"c*"}, ""},
		{"not of the pool", "default", []string{"c6i.*"}, []string{"m7g.*", "r*"}, "pool default has no type that matches c6i.*: it allows m7g.*, r*, except " + metal + burst + gpu},
		{"accelerators in a pool of all", "default", []string{"g5.*", "p*"}, nil, "pool default has no type that matches g5.*, p*: it allows any type, except " + metal + burst + gpu},
		{"accelerators in a pool of *", "default", []string{"g5.xlarge"}, []string{"*"}, "pool default has no type that matches g5.xlarge: it allows *, except " + metal + burst + gpu},
		{"accelerators that the pool names", "default", []string{"g5.*"}, []string{"g5.*", "c*"}, ""},
		{"accelerators that the pool does not name", "default", []string{"p4d.*"}, []string{"g5.*"}, "pool default has no type that matches p4d.*: it allows g5.*, except " + metal + burst},
		{"burstable", "default", []string{"t3.*"}, nil, "pool default has no type that matches t3.*: it allows any type, except " + metal + burst + gpu},
		{"burstable where they are allowed", "bursts", []string{"t3.*"}, nil, ""},
		{"bare metal", "bursts", []string{"c5.metal"}, []string{"c*"}, "pool bursts has no type that matches c5.metal: it allows c*, except " + metal + gpu},
	} {
		got := c.Outside(lifecycle.LaunchOrder{Pool: test.pool, InstanceTypes: test.request, PoolTypes: test.allows, CPU: 2, MemoryMiB: 4096})
		if got != test.why {
			t.Errorf("%s: got %q, want %q", test.name, got, test.why)
		}
	}
	if n := w.calls("DescribeInstanceTypes"); n != 0 {
		t.Errorf("%d questions to EC2, want none", n)
	}
}
