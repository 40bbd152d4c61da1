// Package provision gets a run its hosts and takes them back: Provision claims hosts from the pool, launches
// the rest and waits until they are ready; Release marks a run as over and frees its hosts.
package provision

import (
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Provisioner begins and resumes requests and releases. Its exported fields are its parts: they are set
// before the first call and not changed after it. It is safe for concurrent use.
type Provisioner struct {
	Store   ports.Store
	Queue   ports.Queue
	Compute ports.Machines
	GitHub  ports.GitHub
	// GitHubJobs registers job-scoped runners; nil if there are no job pools.
	GitHubJobs ports.GitHubJobs
	Hosts      *hosts.Hosts
	Quota      *quota.Ledger

	Pools   map[string]ports.Pool
	Classes map[string]ports.Class
	// Sells reports whether the cloud has an instance type that satisfies a class and
	// matches each of the lists of patterns; nil if only a launch can show that.
	Sells func(ports.Class, ...[]string) bool
	// Exhausted are the offerings of a usage class that were short of capacity
	// recently: a launch leaves them out.
	Exhausted func(lifecycle.UsageClass) []lifecycle.Offering
	Timing    ports.Timing
	Log       hclog.Logger
	Observer  ports.Observer
	Ops       *op.Driver

	claiming claiming
}
