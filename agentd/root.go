package main

import (
	"context"

	"github.com/remuda-ci/remuda/internal/host"
)

// prepare and clean are what units of root do for the agent: see host.

func prepare(ctx context.Context, c config) error {
	h, err := c.rootHost()
	if err != nil {
		return err
	}
	return h.PrepareNow(ctx)
}

func clean(ctx context.Context, c config, assignment int64) error {
	c.Assignment = assignment
	h, err := c.rootHost()
	if err != nil {
		return err
	}
	return h.CleanNow(ctx, assignment)
}

// rootHost is the host as root's units see it.
func (c config) rootHost() (*host.Host, error) {
	h, err := c.host(c.InstanceID, c.logger(c.InstanceID))
	if err != nil {
		return nil, &configError{err}
	}
	return h, nil
}
