// Package compute_test keeps the adapters in step with the port of the
// use-cases, which they must not import.
package compute_test

import (
	"github.com/remuda-ci/remuda/internal/compute/computetest"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/fleet"
)

var (
	_ fleet.Compute = (*memory.Compute)(nil)
	_ fleet.Compute = (*process.Compute)(nil)
	_ fleet.Compute = (*ec2.Compute)(nil)
	_ fleet.Compute = computetest.Compute(nil)
)
