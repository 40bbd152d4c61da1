package main

import (
	"context"

	"github.com/remuda-ci/remuda/internal/host"
)

// place is the environment that agentd runs in: a local host with a database file, or an EC2 instance.
type place struct {
	instanceID string
	// hostKey is the key of the host's rows. The store fills it in where it has to be asked for first.
	hostKey string
	store   *lazyStore
	// power powers off the machine; nil if the host ends with agentd.
	power powerSwitch
	// watches report notices about the machine's end to the host, until ctx is done.
	watches []func(ctx context.Context, h *host.Host)
}

// powerSwitch ends a machine, and makes sure that it ends.
type powerSwitch interface {
	host.Power
	// Await waits for the end that Off has begun. An error means that it does not come.
	Await(ctx context.Context) error
}

// findPlace finds out where agentd runs. It calls fail if it turns out later that agentd
// can never work there.
func findPlace(ctx context.Context, c config, fail func(error)) (place, error) {
	if c.Store.DynamoDB != nil {
		return findAWS(ctx, c, fail)
	}
	return place{instanceID: c.InstanceID, hostKey: c.HostKey, store: openSQLite(c.Store.SQLite.Path, c.HostKey)}, nil
}
