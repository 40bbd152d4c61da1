package provision

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// This file notes that GitHub kept a request from its hosts, for the logs of the jobs that run on them.

func githubAway() lifecycle.Reason {
	return lifecycle.Because(lifecycle.ReasonGitHubUnavailable, "GitHub does not answer, so no host can register")
}

// away reports whether a call failed since GitHub does not answer.
func (p *Provision) away(err error, now time.Time) bool {
	return errors.Is(err, lifecycle.ErrUnavailable) && p.env.Hosts.GitHubHealth.Away(now)
}

// heldByGitHub notes that the request waits for GitHub, if that is why it failed. Its row has it, for a replica that goes on with it.
func (p *Provision) heldByGitHub(ctx context.Context, err error, now time.Time) error {
	if !p.away(err, now) || p.q.HeldBy == string(lifecycle.ReasonGitHubUnavailable) {
		return err
	}
	p.q.HoldBack(githubAway())
	if !p.exists { // the row has it from the beginning
		return err
	}
	_, writeErr := p.write(ctx, p.q, now, func() {})
	return errors.Join(err, writeErr)
}

// unheld is the key of a host that is not ready, and whose record does not say yet that GitHub keeps it; empty: there is none.
func (p *Provision) unheld() string {
	for _, key := range p.unready() {
		if a := p.hosts[key].Arrival; a != nil && a.HeldBy != string(lifecycle.ReasonGitHubUnavailable) {
			return key
		}
	}
	return ""
}

// holdHost notes in the record of a host that GitHub keeps it. The agent reads the record before a job begins.
func (p *Provision) holdHost(ctx context.Context, key string, now time.Time) (op.Progress, error) {
	p.q.HoldBack(githubAway()) // with the next write
	r := p.hosts[key]
	arrival := *r.Arrival
	arrival.Held, arrival.HeldBy = p.q.Held, p.q.HeldBy
	r.Arrival = &arrival
	return p.writeHost(ctx, r)
}
