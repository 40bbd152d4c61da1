package main

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

// backends are the adapters that a configuration names, and what the use-cases must know of them.
type backends struct {
	store           store.Store
	queue           fleet.Queue
	compute         fleet.Compute
	hostKey         func(instanceID string) string
	templateVersion func(ctx context.Context, pool string) (string, error)
	exhausted       func(usage lifecycle.UsageClass) []lifecycle.Offering
	ensure          fleet.Ensure
	notices         fleet.Notices // nil: none are received
	sells           func(c fleet.Class, patterns ...[]string) bool
	// endHosts ends every host; nil where hosts always outlive the daemon.
	endHosts func(ctx context.Context) error
	close    func() error
}

// newBackends makes them. With readOnly, for commands that only read, they open the store on this machine
// read-only; in AWS the command's role must not allow changes.
func newBackends(ctx context.Context, c *config.Config, log hclog.Logger, readOnly bool) (*backends, error) {
	if c.Backend() == config.BackendAWS {
		return newAWSBackends(ctx, c, log)
	}
	return newLocalBackends(c, log, readOnly)
}
