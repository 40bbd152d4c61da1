package cli

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// poolsRemedy is what to do where a pool is not found.
const poolsRemedy = "`remuda pools` lists the pools."

// aboutPool is the error of a call that names a pool and no host.
func aboutPool(err error) error { return failure.WithRemedy(err, failure.NotFound, poolsRemedy) }

// pools lists all pages.
func (s *session) pools(ctx context.Context) (all []*remudav1.Pool, err error) {
	for req := (&remudav1.ListPoolsRequest{PageSize: pageSize}); ; {
		resp, err := call(ctx, s, DefaultTimeout, "list pools", s.fleet.ListPools, req)
		if err != nil {
			return nil, err
		}
		all = append(all, resp.GetPools()...)
		if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
			return all, nil
		}
	}
}

// mayBeEmpty is an error if nothing was found of a pool that is not configured: its name is then most likely mistyped. A pool that was taken out of
// the configuration may still have hosts, and costs. A token counts once, so nothing is asked with it.
func (s *session) mayBeEmpty(ctx context.Context, pool string, found int) error {
	if pool == "" || found > 0 || s.poolKnown || s.target.TokenFile != "" {
		return nil
	}
	pools, err := s.pools(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range pools {
		if s.poolKnown = p.GetName() == pool; s.poolKnown {
			return nil
		}
		if !p.GetRemoved() {
			names = append(names, p.GetName())
		}
	}
	return &failure.Error{Code: failure.NotFound, Err: fmt.Errorf("there is no pool %q; configured: %v", pool, names), Remedy: poolsRemedy}
}
