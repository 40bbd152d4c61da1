package main

import (
	"context"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
)

// place is what agentd finds where it runs: a machine of a launcher with a
// database file, or one of EC2.
type place struct {
	instanceID string
	// hostKey is the key of the host's rows; where it is still to be asked for,
	// the store puts it in.
	hostKey string
	store   interface {
		agent.Store
		Close() error
	}
	// power is the machine's switch; nil: the host ends with agentd.
	power powerSwitch
	// watches tell the host, until ctx is done, what is said of the machine's end.
	watches []func(ctx context.Context, h *host.Host)
}

// powerSwitch ends a machine, and sees to it that it ends.
type powerSwitch interface {
	host.Power
	// Await waits for the end that Off has begun: an error means that it does
	// not come.
	Await(ctx context.Context) error
}

// findPlace calls fail when it turns out later that agentd can never work here.
func findPlace(ctx context.Context, c config, fail func(error)) (place, error) {
	if c.Store.DynamoDB != nil {
		return findAWS(ctx, c, fail)
	}
	return place{
		instanceID: c.InstanceID, hostKey: c.HostKey,
		store: &sqliteStore{path: c.Store.SQLite.Path, hostKey: c.HostKey},
	}, nil
}
