package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Demand is who asks for hosts and what for.
type Demand struct {
	Repository string
	RunID      string
	// RequestID names the request; a repeated one resumes it.
	RequestID string
	Spec      lifecycle.Spec
	// MaxHosts is how many hosts the run may have at once, by all its requests
	// together; 0: any number.
	MaxHosts int
}

// Provision gets a run its hosts: it claims from the pool, launches the rest,
// waits until they are ready and commits, or rolls back at the deadline. Its
// progress is in the request's row, so that it can be resumed by anyone.
type Provision struct {
	op.Stages
	env *Provisioner

	demand Demand
	// attended: a caller waits for the outcome. A sweep is nobody's caller.
	attended bool
	// began is when this process took the request up; for measuring.
	began time.Time

	q lifecycle.Request
	// readAt is when the request's row was last read or written here.
	readAt time.Time
	token  *lifecycle.Registration
	// jit is the registration of the host that a job-scoped request tries to
	// claim.
	jit jit
	// hosts are the records of q.Taken, as last seen.
	hosts map[string]lifecycle.Record
	// won are hosts that were claimed but are not in q.Taken yet.
	won []lifecycle.Record
	sel selection
	// booking is the request's room within the limits on hosts.
	booking booking
	// held: a launch was put off, since GitHub is away.
	held bool
	// fresh: the launch was intended here and not tried yet.
	fresh bool
	// made is what came of the launch that is being recorded.
	made quota.LaunchResult
	// doubt is the host of a claim whose answer was lost.
	doubt string
	// round are the unready hosts still to be decided on in this round, and
	// reports what their agents last said.
	round   []string
	reports map[string]lifecycle.Report
	// looks counts the looks without an answer since hosts were last taken.
	looks int
	// reread is when the unready records are read again: somebody else may
	// have ended them.
	reread time.Time
	// askCloud is when the cloud is asked next for hosts that were never heard,
	// and dead are those that it said are gone, by host key.
	askCloud time.Time
	dead     map[string]lifecycle.Machine
	tidy     *requestCleanup
	// trouble is why the last launch could not be made; nil: it could.
	trouble error
	// relook is when a request that was short of capacity looks again.
	relook time.Time
}

// NewProvision begins a request, or resumes the one that has its id. Its spec
// gets its defaults here: *InvalidError.
func (pr *Provisioner) NewProvision(d Demand) (*Provision, error) {
	spec, err := pr.Fill(d.Spec)
	if err != nil {
		return nil, err
	}
	d.Spec = spec
	if d.Spec.JobsOf != "" && pr.GitHubJobs == nil {
		return nil, errors.New("request a job-scoped host: this fleet has no job pools")
	}
	p := &Provision{env: pr, Stages: pr.Ops.Stages(""), demand: d, attended: true, dead: map[string]lifecycle.Machine{}}
	p.Next = p.begin
	return p, nil
}

// NewUnattended begins a request that no caller waits for: its hosts go back
// when they get no job.
func (pr *Provisioner) NewUnattended(d Demand) (*Provision, error) {
	p, err := pr.NewProvision(d)
	if err != nil {
		return nil, err
	}
	p.attended = false
	return p, nil
}

// Resume goes on with a request that stood still.
func (pr *Provisioner) Resume(q lifecycle.Request) *Provision {
	p := &Provision{env: pr, Stages: pr.Ops.Stages(""), q: q, dead: map[string]lifecycle.Machine{}}
	p.demand = Demand{Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Spec: q.Spec}
	p.Next = p.resume
	return p
}

// Request is the request as it stands.
func (p *Provision) Request() lifecycle.Request { return p.q }

// Instances are the hosts that the request has, in the order it took them.
func (p *Provision) Instances() []lifecycle.Record {
	list := make([]lifecycle.Record, 0, len(p.q.Taken))
	for _, t := range p.q.Taken {
		if r, ok := p.hosts[t.HostKey]; ok {
			list = append(list, r)
		}
	}
	return list
}

// begin writes the request row. The token comes first: with GitHub down
// nothing is claimed.
func (p *Provision) begin(ctx context.Context, now time.Time) (op.Progress, error) {
	if p.began.IsZero() {
		p.began = now
	}
	if err := p.mint(ctx, now); err != nil {
		return op.Again, err
	}
	q := lifecycle.Request{
		Repository: p.demand.Repository, RunID: p.demand.RunID, RequestID: p.demand.RequestID,
		Spec: p.demand.Spec, MaxHosts: p.demand.MaxHosts, CreatedAt: now, Deadline: now.Add(p.demand.Spec.Timeout),
		DueAt: now.Add(p.env.Timing.Takeover), Version: 1,
	}
	err := p.env.Store.CreateRequest(ctx, q)
	switch {
	case errors.Is(err, lifecycle.ErrExists):
		p.Next = p.resume
		return op.Again, nil
	case err != nil:
		return op.Again, fmt.Errorf("create request %s: %w", q.RequestID, err)
	}
	p.Events.Effects++
	p.q, p.readAt, p.hosts = q, now, map[string]lifecycle.Record{}
	p.sel = newSelection()
	p.Next = p.book
	if q.MaxHosts > 0 {
		p.Next = p.keepWithin
	}
	return op.Again, nil
}

// untouched reports whether the request has not taken or launched anything: it
// may have been left before its limit was checked.
func (p *Provision) untouched() bool {
	return p.q.Launches == 0 && len(p.q.Taken)+len(p.won) == 0
}

// keepWithin refuses the request if the run has more hosts with it than it may
// have. It looks after its row is written, so that of two requests made at once
// at least one sees the other.
func (p *Provision) keepWithin(ctx context.Context, now time.Time) (op.Progress, error) {
	requests, err := p.env.Store.RequestsOfRun(ctx, p.q.Repository, p.q.RunID)
	if err != nil {
		return op.Again, fmt.Errorf("list requests of run %s: %w", p.q.RunID, err)
	}
	hosts, err := p.env.hostsAsked(ctx, requests)
	if err != nil {
		return op.Again, err
	}
	if hosts <= p.q.MaxHosts {
		p.Next = p.book
		return op.Again, nil
	}
	return p.giveUpShort(ctx, fmt.Sprintf("run %s would have %d hosts, and may have %d at once", p.q.RunID, hosts, p.q.MaxHosts), now)
}

// giveUpShort settles a request that has not taken a host and never may.
func (p *Provision) giveUpShort(ctx context.Context, why string, now time.Time) (op.Progress, error) {
	q := p.q
	q.Outcome, q.ExpiresAt, q.Reason = lifecycle.OutcomeShort, now.Add(p.env.Timing.KeepRequests), why
	return p.write(ctx, q, now, func() {
		p.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionSettle, q.Reason, now))
		p.Next = p.finish
	})
}

// hostsAsked counts the hosts that requests have or wait for.
func (pr *Provisioner) hostsAsked(ctx context.Context, requests []lifecycle.Request) (int, error) {
	hosts := 0
	for _, q := range requests {
		switch {
		case q.Released():
		case !q.Settled():
			hosts += q.Spec.Count
		case len(q.Taken) > 0:
			serving, _, err := pr.Hosts.OfRequest(ctx, q, nil)
			if err != nil {
				return 0, err
			}
			for _, r := range serving {
				if r.ReplacedBy == "" { // the request for another one in its place counts
					hosts++
				}
			}
		}
	}
	return hosts, nil
}

// tokenMargin: a registration token this close to its end is not handed out,
// since a host may need that long to use it.
const tokenMargin = 5 * time.Minute

// mint makes sure of a registration token for the hosts to come. A job-scoped
// host has none: it is registered by its name.
func (p *Provision) mint(ctx context.Context, now time.Time) error {
	if p.jobScoped() {
		return nil
	}
	if p.token != nil && (p.token.ExpiresAt.IsZero() || p.token.ExpiresAt.After(now.Add(tokenMargin))) {
		return nil
	}
	token, err := p.env.GitHub.RegistrationToken(ctx, p.demand.Repository)
	if err != nil {
		return fmt.Errorf("mint a registration token for %s: %w", p.demand.Repository, err)
	}
	p.token = &token
	return nil
}

// resume rebuilds from the store what a Provision holds in memory, and goes on
// where the request stands.
func (p *Provision) resume(ctx context.Context, now time.Time) (op.Progress, error) {
	q, err := p.env.Store.Request(ctx, p.demand.Repository, p.demand.RunID, p.demand.RequestID)
	if err != nil {
		return op.Again, fmt.Errorf("read request %s: %w", p.demand.RequestID, err)
	}
	if !q.Spec.Equal(p.demand.Spec) {
		return op.Done, fmt.Errorf("request %s: %w", q.RequestID, ErrSpecDiffers)
	}
	p.q, p.readAt, p.won = q, now, nil
	p.sel = newSelection()
	if err := p.loadHosts(ctx); err != nil {
		return op.Again, err
	}
	p.booking.rooms = nil
	switch {
	case q.Released() || q.Settled():
		p.booking.late = p.booking.done
		p.Next = p.finish
	case q.Launch != nil:
		p.Next = p.bookLaunch
	case len(p.won) > 0:
		p.Next = p.take
	case q.ReplacementOf != nil && p.untouched():
		p.Next = p.stillLost
	case q.MaxHosts > 0 && p.untouched():
		p.Next = p.keepWithin
	default:
		p.Next = p.await
	}
	return op.Again, nil
}

// loadHosts reads the request's hosts: those it names, those that name it
// because a crash came between the claim and the request's write, and those
// that this operation has seen before.
func (p *Provision) loadHosts(ctx context.Context) error {
	records, _, err := p.env.Hosts.OfRequest(ctx, p.q, p.known())
	if err != nil {
		return err
	}
	p.hosts = map[string]lifecycle.Record{}
	for _, r := range records {
		p.win(r)
	}
	return nil
}

// known are the keys of the hosts that this operation has seen. The index may
// not have them yet.
func (p *Provision) known() []string { return slices.Sorted(maps.Keys(p.hosts)) }

// win notes a host that serves the request. What a crash or a lost answer made
// uncertain may be found more than once: it counts once.
func (p *Provision) win(r lifecycle.Record) {
	p.hosts[r.HostKey] = r
	known := func(w lifecycle.Record) bool { return w.HostKey == r.HostKey }
	if !p.q.Has(r.HostKey) && !slices.ContainsFunc(p.won, known) {
		p.won = append(p.won, r)
	}
}

// take writes the won hosts into the request row. The write is the check that
// docs/design.md#operations asks for after a claim: it fails when the run was released
// meanwhile, and then the claims are undone.
func (p *Provision) take(ctx context.Context, now time.Time) (op.Progress, error) {
	q := p.q
	q.Taken = slices.Clone(q.Taken)
	for _, r := range p.won {
		q.Taken = append(q.Taken, lifecycle.Taken{HostKey: r.HostKey, InstanceID: r.InstanceID, Reused: r.Assignment > 1})
	}
	return p.write(ctx, q, now, func() {
		p.won, p.looks = nil, 0
		p.Next = p.selectHosts
	})
}

// write replaces the request row and then does what follows. When somebody
// else wrote it first, the operation resumes from what is there.
func (p *Provision) write(ctx context.Context, q lifecycle.Request, now time.Time, then func()) (op.Progress, error) {
	if !q.Settled() {
		q.DueAt = now.Add(p.env.Timing.Takeover)
	}
	stored, err := p.env.Store.UpdateRequest(ctx, q)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		p.Next = p.resume
		return op.Again, nil
	case err != nil:
		// The write may have taken effect. A repeat would then lose to
		// itself, and resume.
		return op.Again, fmt.Errorf("write request %s: %w", q.RequestID, err)
	}
	p.Events.Effects++
	p.q, p.readAt = stored, now
	then()
	return op.Again, nil
}
