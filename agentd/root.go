package main

import "context"

// prepare and clean run as root, in units that the agent starts: see package host.

func prepare(ctx context.Context, c config) error {
	h, err := c.host(0)
	if err != nil {
		return &configError{err}
	}
	return h.PrepareNow(ctx)
}

func clean(ctx context.Context, c config, assignment int64) error {
	h, err := c.host(assignment)
	if err != nil {
		return &configError{err}
	}
	return h.CleanNow(ctx, assignment)
}
