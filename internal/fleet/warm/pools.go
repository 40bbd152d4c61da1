// Package warm keeps pools topped up with hosts that were launched ahead of need.
package warm

import (
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/provision"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Pools are the warm pools of a fleet. The exported fields are its parts: they are set
// before the first call and not changed after it. It is safe for concurrent use.
type Pools struct {
	Store     ports.Store
	Hosts     *hosts.Hosts
	Quota     *quota.Ledger
	Provision *provision.Provisioner
	Pools     map[string]ports.Pool
	// Exhausted are the offerings of a usage class that were short of capacity
	// recently: a launch leaves them out.
	Exhausted func(lifecycle.UsageClass) []lifecycle.Offering
	Timing    ports.Timing
	Log       hclog.Logger
	Ops       *op.Driver
}
