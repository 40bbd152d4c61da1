// Package bench measures what Remuda promises: how fast a claim is, what a
// sweep reads, what an idle agent costs. Its benchmarks print percentiles as
// metrics of their own, in the format that benchstat reads.
package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// instantHosts is a store whose hosts signal at once: each write that asks
// something of a host is followed by that host's report. What is measured on
// it is Remuda's own time, without that of agents and runners.
type instantHosts struct {
	fleet.Store
	// put writes the report of a host as its agent does.
	put func(ctx context.Context, p lifecycle.Report) error

	mu     sync.Mutex
	claims []time.Time // when hosts were claimed
}

func (s *instantHosts) report(ctx context.Context, r lifecycle.Record, signal lifecycle.Signal) error {
	err := s.put(ctx, lifecycle.Report{
		HostKey: r.HostKey, HeartbeatAt: time.Now(), Assignment: r.Assignment, Signal: signal,
	})
	if err != nil {
		return fmt.Errorf("report of %s: %w", r.HostKey, err)
	}
	return nil
}

func (s *instantHosts) ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	r, err := s.Store.ClaimInstance(ctx, c)
	if err != nil {
		return r, err
	}
	s.mu.Lock()
	s.claims = append(s.claims, time.Now())
	s.mu.Unlock()
	return r, s.report(ctx, r, lifecycle.SignalRegOK)
}

func (s *instantHosts) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	r, err := s.Store.UpdateInstance(ctx, r)
	if err != nil || !r.Releasing() {
		return r, err
	}
	return r, s.report(ctx, r, lifecycle.SignalRemoveRegOK)
}

// offlineGitHub mints tokens without a network.
type offlineGitHub struct {
	fleet.GitHub
	minted atomic.Int64
}

func (g *offlineGitHub) token(kind lifecycle.RegistrationKind, repository string) (lifecycle.Registration, error) {
	return lifecycle.Registration{
		Kind: kind, URL: "https://github.test/" + repository,
		Secret: lifecycle.Secret(fmt.Sprint(g.minted.Add(1))), ExpiresAt: time.Now().Add(time.Hour),
	}, nil
}

func (g *offlineGitHub) RegistrationToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return g.token(lifecycle.RegistrationToken, repository)
}

func (g *offlineGitHub) RemoveToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return g.token(lifecycle.RegistrationRemove, repository)
}
