package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// jobScoped reports whether the request is for a host that runs one job.
func (p *Provision) jobScoped() bool { return p.demand.Spec.JobsOf != "" }

// jit is a registration of a job-scoped host, made before the host is claimed:
// while GitHub is down nothing is claimed.
type jit struct {
	runner       string // its name; empty: there is none
	registration lifecycle.Registration
	id           int64
}

// runnerTerms are what the runner of a claimed host is registered with.
type runnerTerms struct {
	labels       []string
	registration *lifecycle.Registration
	id           int64 // the runner's id at GitHub; 0: it is not registered yet
}

// termsFor is what the host of a message is claimed with: the run's token, or for a job-scoped host a
// registration under the name that it will have. A repeated try uses the registration of the one before.
func (p *Provision) termsFor(ctx context.Context, m lifecycle.Message) (runnerTerms, error) {
	labels, err := p.claimLabels(ctx, m)
	if err != nil || !p.jobScoped() {
		return runnerTerms{labels: labels, registration: p.token}, err
	}
	name := lifecycle.RunnerName(m.Assignment+1, m.InstanceID)
	if p.jit.runner != name {
		p.withdrawJIT(ctx)
		if err := p.stillPooled(ctx, m); err != nil {
			return runnerTerms{}, err
		}
		registration, id, err := p.env.GitHubJobs.JIT(ctx, p.q.Repository, name, labels)
		switch {
		case errors.Is(err, lifecycle.ErrBusy):
			return runnerTerms{}, fmt.Errorf("register runner %s: %w: %w", name, lifecycle.ErrConflict, err) // another request claimed it in the meantime
		case err != nil:
			return runnerTerms{}, fmt.Errorf("register runner %s: %w", name, err)
		}
		p.jit = jit{runner: name, registration: registration, id: id}
	}
	return runnerTerms{labels: labels, registration: &p.jit.registration, id: p.jit.id}, nil
}

// stillPooled reads whether the host of a message can be claimed by it, before a runner is registered under
// its next name: messages and the index are old now and then, and the name of a host that was claimed would
// be taken over from it. If not: ErrLost.
func (p *Provision) stillPooled(ctx context.Context, m lifecycle.Message) error {
	r, err := p.env.Store.Instance(ctx, m.HostKey)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
	case err != nil:
		return fmt.Errorf("read host %s: %w", m.InstanceID, err)
	case (r.Pooled() || r.Stopped()) && r.Assignment == m.Assignment && r.Standby == nil:
		return nil
	}
	return fmt.Errorf("claim host %s: %w: its message is old", m.InstanceID, lifecycle.ErrConflict)
}

// hostLabels are the labels of the request's hosts: exactly those of its spec, unless the pool asks for
// GitHub's default labels too. Any job of the scope that names these alone would come to such a host.
func (pr *Provisioner) hostLabels(s lifecycle.Spec, arch string) []string {
	if !pr.Pools[s.Pool].DefaultLabels {
		return s.Labels
	}
	return policy.WithDefaultLabels(s.Labels, arch)
}

// claimLabels are the labels of the host of a message. Only a pool with default labels costs a read: messages do
// not say what architecture a host has.
func (p *Provision) claimLabels(ctx context.Context, m lifecycle.Message) ([]string, error) {
	if !p.env.Pools[p.q.Spec.Pool].DefaultLabels {
		return p.q.Spec.Labels, nil
	}
	r, err := p.env.Store.Instance(ctx, m.HostKey)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return nil, fmt.Errorf("claim host %s: %w: it has no record", m.InstanceID, lifecycle.ErrConflict)
	case err != nil:
		return nil, fmt.Errorf("read host %s: %w", m.InstanceID, err)
	}
	return p.env.hostLabels(p.q.Spec, r.Arch), nil
}

// withdrawJIT deletes a registration whose host was not won. One that stays is
// a ghost, which the GitHub sweep removes.
func (p *Provision) withdrawJIT(ctx context.Context) {
	if p.jit.runner == "" {
		return
	}
	if err := p.env.GitHub.DeleteRunner(ctx, p.q.Repository, p.jit.id); err != nil {
		p.env.Log.Warn("registration not deleted; the sweep goes on", logkey.Runner, p.jit.runner, logkey.Error, err)
	}
	p.jit = jit{}
}

// reservedLook is when a host is tried again that another request of this
// process is about to claim: that takes one call to GitHub.
const reservedLook = 50 * time.Millisecond

// mayLaunch asks GitHub for a token before a machine is launched: with GitHub
// down none is. For a job the token itself is of no use, since the machine can be
// registered only once it is known; for a run it is the one that there is.
func (p *Provision) mayLaunch(ctx context.Context) error {
	if _, err := p.env.GitHub.RegistrationToken(ctx, p.q.Repository); err != nil {
		return fmt.Errorf("ask GitHub before a launch for %s: %w", p.q.Repository, err)
	}
	return nil
}

// unregistered is the key of a new job-scoped host that has no registration
// yet, or "": its name is known only once it is launched.
func (p *Provision) unregistered() string {
	if !p.jobScoped() {
		return ""
	}
	for _, t := range p.q.Taken {
		r, ok := p.hosts[t.HostKey]
		if ok && r.State == lifecycle.StateCreated && r.Registration == nil && r.GitHubRunnerID == 0 {
			return t.HostKey
		}
	}
	return ""
}

// registerHost registers a launched host. After a crash between the call and
// the write the call is repeated, and takes over the name.
func (p *Provision) registerHost(ctx context.Context, now time.Time) (op.Progress, error) {
	r := p.hosts[p.unregistered()]
	registration, id, err := p.env.GitHubJobs.JIT(ctx, r.Repository, r.RunnerName, p.env.hostLabels(p.q.Spec, r.Arch))
	if errors.Is(err, lifecycle.ErrRefused) {
		return p.settleRefused(ctx, err, now)
	}
	if err != nil {
		if !now.Before(p.q.Deadline) {
			return p.settle(ctx, now) // not in time
		}
		return op.Again, fmt.Errorf("register runner %s: %w", r.RunnerName, err)
	}
	r.Registration, r.GitHubRunnerID, r.UpdatedAt = &registration, id, now
	return p.writeHost(ctx, r)
}

// writeHost replaces the record of a host of the request. If another has written it, all is read again.
func (p *Provision) writeHost(ctx context.Context, r lifecycle.Record) (op.Progress, error) {
	stored, err := p.env.Store.UpdateInstance(ctx, r)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		p.reload()
		return op.Again, nil
	case err != nil:
		return op.Again, fmt.Errorf("write host %s: %w", r.InstanceID, err)
	}
	p.Events.Effects++
	p.hosts[r.HostKey] = stored
	return op.Again, nil
}

// settleRefused ends a request for a job-scoped host that GitHub refuses, as for a repository that is gone:
// until its deadline it would keep a turn of the pool from others.
func (p *Provision) settleRefused(ctx context.Context, refusal error, now time.Time) (op.Progress, error) {
	q := p.q
	q.Outcome, q.Taken, q.DueAt = lifecycle.OutcomeShort, nil, now.Add(p.env.Timing.Takeover)
	q.ExpiresAt = now.Add(p.env.Timing.KeepRequests)
	q.Reason = refusal.Error()
	return p.write(ctx, q, now, func() {
		p.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionSettle, lifecycle.Reason{Code: lifecycle.ReasonRequestRefused, Text: q.Reason}, now))
	})
}

// giveUpRefused gives the messages of hosts back to others first.
func (p *Provision) giveUpRefused(ctx context.Context, now time.Time) (op.Progress, error) {
	if p.sel.held() > 0 {
		return p.settleMessages(ctx)
	}
	return p.settleRefused(ctx, p.refusal, now)
}
