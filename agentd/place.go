package main

import (
	"context"
	"time"

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
	power host.Power
	// watch tells when the machine will be taken, until ctx is done; nil: nobody
	// would say.
	watch func(ctx context.Context, tell func(at time.Time))
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
