// Package explain answers operators: which hosts there are, what happened, and why a
// run or a host is as it is.
package explain

import (
	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/scaledown"
)

// Explainer answers questions. Its exported fields are its parts: they are set before
// the first call and not changed after it. It is safe for concurrent use.
type Explainer struct {
	Store  ports.Store
	GitHub ports.GitHub
	// JobStore keeps the jobs; nil: there are none.
	JobStore  ports.JobStore
	Hosts     *hosts.Hosts
	Scaledown *scaledown.Scaler
	// Options are those of scale-down; nil: it is off.
	Options *scaledown.Options
	Pools   map[string]ports.Pool
}
