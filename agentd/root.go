package main

import "context"

// prepare and clean are what units of root do for the agent: see host.

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
