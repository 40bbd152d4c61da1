// Package quota bounds how many hosts a fleet has: limits on the hosts of each repository and owner, the
// maximum of each pool, and the breaker that pauses spot launches. What counts against a limit is kept in one
// row for each limit, with an entry for each request or launch.
package quota

import (
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Ledger reserves room within limits and gives it back. Its exported fields are its parts: they are set
// before the first call and not changed after it. It is safe for concurrent use.
type Ledger struct {
	Store ports.Store
	// Guards keeps the rows; nil: there are no limits, maxima and breakers.
	Guards  ports.GuardStore
	Compute ports.Machines
	Hosts   *hosts.Hosts
	Limits  policy.Limits
	Pools   map[string]ports.Pool
	Log     hclog.Logger
	Ops     *op.Driver
}
