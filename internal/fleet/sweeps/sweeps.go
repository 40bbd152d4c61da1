// Package sweeps holds the sweeps over hosts, machines and registrations, and the
// sweeper that runs all sweeps of a fleet while its replica holds the lease.
package sweeps

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Sweeps begins sweeps. Its exported fields are its parts: they are set before the
// first call and not changed after it. It is safe for concurrent use.
type Sweeps struct {
	Store   ports.Store
	Compute ports.Machines
	GitHub  ports.GitHub
	Hosts   *hosts.Hosts
	Quota   *quota.Ledger

	// Resumer resumes a request that stood still.
	Resumer func(lifecycle.Request) op.Op
	// LostJobs provides for jobs that lost their host; nil: there are no jobs.
	LostJobs LostHostJobs
	// Notices are what EC2 announces of machines; nil: nothing is received.
	Notices ports.Notices
	// Releases lists the releases of actions/runner; nil: the age of runners is not checked.
	Releases func(context.Context) ([]policy.Release, error)
	// Repositories are those that the GitHub sweep goes through.
	Repositories []string

	Pools   map[string]ports.Pool
	HostKey func(instanceID string) string
	// Replica names this process in the lease.
	Replica  string
	Timing   ports.Timing
	Log      hclog.Logger
	Observer ports.Observer
	Ops      *op.Driver

	versions runnerVersions
	// sweeping: this replica holds the lease of the sweeps.
	sweeping atomic.Bool
}
