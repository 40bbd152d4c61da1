package main

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// parts are the adapters that a configuration names, and what the use-cases
// must know of them.
type parts struct {
	store   fleet.Store
	queue   fleet.Queue
	compute fleet.Compute
	jobs    fleet.JobStore
	workers workqueue.Store
	// services keeps what was last seen of services of runners.
	services services.Store

	guards          fleet.GuardStore
	hostKey         func(instanceID string) string
	templateVersion func(ctx context.Context, pool string) (string, error)
	exhausted       func(usage lifecycle.UsageClass) []lifecycle.Offering
	ensure          fleet.Ensure
	notices         fleet.Notices // nil: nobody listens
	sells           func(c fleet.Class, patterns ...[]string) bool
	// endHosts ends every host; nil: hosts outlive the daemon in any case.
	endHosts func(ctx context.Context) error
	close    func() error
}

func newParts(ctx context.Context, c *config.Config, log hclog.Logger) (*parts, error) {
	if c.AWS != nil {
		return newAWSParts(ctx, c, log)
	}
	return newLocalParts(c, log, false)
}

// newReadParts are for who only looks: on this machine they change nothing, and
// in AWS nobody may call what does.
func newReadParts(ctx context.Context, c *config.Config, log hclog.Logger) (*parts, error) {
	if c.AWS != nil {
		return newAWSParts(ctx, c, log)
	}
	return newLocalParts(c, log, true)
}
