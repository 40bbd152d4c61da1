// Package scaledown ends idle hosts, and hosts that GitHub does not know: it lists the
// registrations of each owner, applies what policy.ScaleDown decides, and takes the
// snapshot from which `controld plan` shows the next decisions.
package scaledown

import (
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
)

// Scaler begins sweeps of scale-down and takes snapshots. Its exported fields are its parts: they are set
// before the first call and not changed after it. It is safe for concurrent use.
type Scaler struct {
	Store   ports.Store
	Compute ports.Machines
	GitHub  ports.GitHub
	Hosts   *hosts.Hosts
	// Options say what is ended; nil: nothing is.
	Options *Options
	// JobPools are the job pools, by the name of their pool.
	JobPools map[string]ports.JobPool
	Log      hclog.Logger
	Ops      *op.Driver
}
