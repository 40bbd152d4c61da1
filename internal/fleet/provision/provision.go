// Package provision gets a run its hosts and takes them back: Provision claims hosts from the pool, launches
// the rest and waits until they are ready; Release marks a run as over and frees its hosts.
package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/gather"
	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Provision gets a run its hosts: it claims from the pool, launches the rest, waits until they are ready and
// commits, or rolls back at the deadline. Its progress is in the request's row, so that any process can
// resume it. What it keeps in memory beside the row is plain data, and step looks at nothing else.
type Provision struct {
	op.Stages
	env *Provisioner

	demand Demand
	// attended: a caller waits for the outcome. A sweep that resumes a request does not.
	attended bool
	// began is when this process began to work on the request. It is only measured.
	began time.Time
	// reservesAs is its number for reservations; 0: it has made none.
	reservesAs claimer

	// exists: the request has a row. loaded: q is that row, as this operation last
	// read or wrote it, and everything below belongs to it.
	exists, loaded bool
	q              lifecycle.Request
	// readAt is when the request's row was last read or written here.
	readAt time.Time
	token  *lifecycle.Registration
	// jit is the registration of the host that a job-scoped request is trying to claim.
	jit jit
	// hosts are the request's records as last seen, by host key: those of q.Taken
	// and those that are not in the row yet.
	hosts map[string]lifecycle.Record
	// unrecorded are hosts that were claimed or launched and are not in q.Taken yet.
	unrecorded []lifecycle.Record
	// found are the keys of those that were found in records or taken out of the row again, if limits are on: see claimAgain.
	found map[string]bool
	// starting are the keys of hosts that were stopped and taken, whose machines are to be started once the row has them.
	starting []string
	// checkReplaced and checkLimit: the request has not taken anything, and it has to be checked first
	// whether the host that it replaces is still wanted, and whether the run stays within MaxHosts.
	checkReplaced, checkLimit bool
	// limitTries counts how often checkLimit waited for later requests.
	limitTries int
	// search is what the request does for the hosts that it lacks.
	search search
	sel    selection
	// booking is the request's reservation within the limits on hosts.
	booking booking
	// full is a quota without room for the request, to be audited; nil: none is.
	full *policy.Quota
	// refusal is why GitHub refuses the host of a job; nil: it does not.
	refusal error
	// deferred: a launch was put off, since GitHub is unavailable.
	deferred bool
	// launcher makes the launch of q.Launch.
	launcher Launcher
	// unknownClaims are the hosts of claims whose answers were lost, by host key.
	unknownClaims []string
	// round are the unready hosts that this round has still to decide on, and
	// reports are the last reports of their agents.
	round   []string
	reports map[string]lifecycle.Report
	// heard are the last reports of all rounds, for the answer.
	heard map[string]lifecycle.Report
	// unlabeled are those of the round whose runners have yet to get the labels of the run, and
	// labeled what GitHub answered about the others, by host key.
	unlabeled []string
	labeled   map[string]lifecycle.Facts
	// discarded are the records of hosts before they were to register for the run instead, while their old registrations are not
	// known to be gone, and withdrawn the names of those that are. withdrawAt is when deletion is tried next.
	discarded  []lifecycle.Record
	withdrawn  map[string]bool
	withdrawAt time.Time
	// looks counts the rounds without an answer since hosts were last recorded.
	looks int
	// rereadAt is when the unready records are read again: another operation may have ended them.
	rereadAt time.Time
	// askCloud is when the cloud is next asked for hosts that have never reported,
	// and dead are the machines that the cloud lists as gone, by host key.
	askCloud time.Time
	dead     map[string]lifecycle.Machine
	cleanup  *requestCleanup
	// launchErr is why the last launch could not be made; nil: it could.
	launchErr error
	// retryAt is when a request that was short of capacity searches again.
	retryAt time.Time
}

// search is what a request does for the hosts that it lacks.
type search int

const (
	waiting   search = iota // nothing: it waits for those that it has, or for retryAt
	reserving               // it makes room for them within the limits
	selecting               // it claims them from the pool, then launches
)

// step does the first thing that the state of the request calls for. The cases are
// in the order of a request's life, and beside the row there is no other record of
// how far it has come: a resumed request is a request that was just loaded.
func (p *Provision) step(ctx context.Context, now time.Time) (op.Progress, error) {
	switch {
	case !p.exists:
		return p.create(ctx, now)
	case !p.loaded:
		return p.load(ctx, now)
	case p.q.Released() || p.q.Settled():
		return p.finish(ctx, now)
	case p.refusal != nil:
		return p.giveUpRefused(ctx, now)
	case p.q.Launch != nil:
		return p.launch(ctx, now)
	case p.search == waiting && p.exceeds(now):
		return p.giveBackExcess(ctx, now)
	case p.search == waiting && len(p.unrecorded) > 0:
		return p.recordClaims(ctx, now)
	case p.checkReplaced:
		return p.checkReplacement(ctx, now)
	case p.checkLimit:
		return p.checkRunLimit(ctx, now)
	case p.full != nil:
		return p.auditFull(ctx, now)
	case p.search == reserving:
		return p.reserveQuota(ctx, now)
	case p.search == selecting:
		return p.selectHosts(ctx, now)
	}
	return p.await(ctx, now)
}

// State implements op.Stated. Without began, which is only measured, and looks, which only
// says how long to wait.
func (p *Provision) State() []any {
	var readAt time.Time // only an open launch depends on it: see changedWhileStill
	if p.q.Launch != nil {
		readAt = p.readAt
	}
	var reports map[string]lifecycle.Report // each round reads them again
	var labeled []any
	if len(p.round) > 0 {
		reports = p.reports
		for _, key := range slices.Sorted(maps.Keys(p.labeled)) {
			labeled = append(labeled, key, p.labeled[key].LabelsSet) // else its runner is gone
		}
	}
	return []any{
		p.attended, p.exists, p.loaded, p.q, readAt, p.token, p.jit.runner, p.jit.id, p.hosts, p.unrecorded, slices.Sorted(maps.Keys(p.found)), p.starting,
		p.checkReplaced, p.checkLimit, p.limitTries, int(p.search), p.sel.state(), p.booking.state(), p.full, p.refusal, p.deferred,
		p.launcher.state(), p.unknownClaims, p.round, reports, p.unlabeled, labeled, p.discarded, slices.Sorted(maps.Keys(p.withdrawn)), p.withdrawAt, p.rereadAt, p.askCloud, p.dead, p.cleanup.state(), p.launchErr, p.retryAt,
	}
}

// Subject implements op.Described.
func (p *Provision) Subject() op.Subject {
	d := p.demand
	return op.Subject{Name: "provision", Repository: d.Repository, RunID: d.RunID, RunAttempt: d.Spec.RunAttempt, RequestID: d.RequestID, Pool: d.Spec.Pool}
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

// create writes the request row. The token comes first: with GitHub unavailable nothing is claimed.
func (p *Provision) create(ctx context.Context, now time.Time) (op.Progress, error) {
	if p.began.IsZero() {
		p.began = now
	}
	if err := p.mint(ctx, now); err != nil {
		return op.Again, p.heldByGitHub(ctx, err, now)
	}
	q := lifecycle.Request{
		Repository: p.demand.Repository, RunID: p.demand.RunID, RequestID: p.demand.RequestID, Workflow: p.demand.Workflow,
		Spec: p.demand.Spec, Kind: cmp.Or(p.demand.Kind, lifecycle.RequestByCaller), MaxHosts: p.demand.MaxHosts, CreatedAt: now, Deadline: now.Add(p.demand.Spec.Timeout),
		Wait: p.q.Wait, DueAt: now.Add(p.env.Timing.Takeover), Version: 1,
	}
	err := p.env.Store.CreateRequest(ctx, q)
	switch {
	case errors.Is(err, lifecycle.ErrExists):
		p.exists = true
		return op.Again, nil
	case err != nil:
		return op.Again, fmt.Errorf("create request %s: %w", q.RequestID, err)
	}
	p.Events.Effects++
	p.exists, p.loaded = true, true
	p.q, p.readAt, p.hosts = q, now, map[string]lifecycle.Record{}
	p.search, p.checkLimit = reserving, q.MaxHosts > 0
	return op.Again, nil
}

// untouched reports whether the request has not taken or launched anything. It may
// have been interrupted before its limit was checked.
func (p *Provision) untouched() bool {
	return p.q.Launches == 0 && len(p.q.Taken)+len(p.unrecorded) == 0
}

// checkRunLimit refuses the request if the run has more hosts with it than it may have. It looks after its
// row is written, so that of two requests made at once at least one sees the other. If only later requests
// are in its way, it waits until they are settled: they give way to it, and if each refused itself for the
// others, the run would get no host.
func (p *Provision) checkRunLimit(ctx context.Context, now time.Time) (op.Progress, error) {
	requests, err := p.env.Store.RequestsOfRun(ctx, p.q.Repository, p.q.RunID)
	if err != nil {
		return op.Again, fmt.Errorf("list requests of run %s: %w", p.q.RunID, err)
	}
	all, first, err := p.env.hostsAsked(ctx, p.q, requests)
	switch {
	case err != nil:
		return op.Again, err
	case all <= p.q.MaxHosts:
		p.checkLimit, p.search = false, reserving
		return op.Again, nil
	case first > p.q.MaxHosts || !now.Before(p.q.Deadline):
		return p.giveUpShort(ctx, lifecycle.Because(lifecycle.ReasonRequestShort, "run %s would have %s, and may have %d at once", p.q.RunID, plural.Of(all, "host", "hosts"), p.q.MaxHosts), now)
	}
	if !slices.ContainsFunc(requests, func(q lifecycle.Request) bool { return q.RequestID == p.q.RequestID && q.Version == p.q.Version }) {
		p.reload() // it was released, or another replica goes on with it
		return op.Again, nil
	}
	p.limitTries++
	return op.Wait(p.env.Ops.Backoff(p.limitTries)), nil
}

// giveUpShort settles a request that has no host and can never get one.
func (p *Provision) giveUpShort(ctx context.Context, why lifecycle.Reason, now time.Time) (op.Progress, error) {
	q := p.q
	q.Outcome, q.ExpiresAt, q.Reason = lifecycle.OutcomeShort, now.Add(p.env.Timing.KeepRequests), why.Text
	return p.write(ctx, q, now, func() {
		p.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionSettle, why, now))
	})
}

// hostsAsked counts the hosts that the requests of q's run have or wait for: all of them, and
// those of q, of requests before it and of settled ones.
func (pr *Provisioner) hostsAsked(ctx context.Context, q lifecycle.Request, requests []lifecycle.Request) (all, first int, err error) {
	for _, other := range requests {
		hosts := 0
		switch {
		case other.Released():
		case !other.Settled():
			hosts = other.Spec.Count
		case len(other.Taken) > 0:
			serving, _, err := pr.Hosts.OfRequest(ctx, other, nil)
			if err != nil {
				return 0, 0, err
			}
			for _, r := range serving {
				if r.ReplacedBy == "" { // the request for another one in its place counts
					hosts++
				}
			}
		}
		all += hosts
		if other.Settled() || createdOrder(other, q) <= 0 {
			first += hosts
		}
	}
	return all, first, nil
}

// createdOrder is an order of requests that all replicas agree on. It is the order of
// their clocks, which differ, so a later request may have been there first.
func createdOrder(a, b lifecycle.Request) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.RequestID, b.RequestID))
}

// tokenMargin is how long a registration token must still be valid to be given to a
// host, which may need that long to use it.
const tokenMargin = 5 * time.Minute

// mint gets a registration token for the next hosts unless p has a usable one. A
// job-scoped host needs none: it is registered by its name.
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

// load reads the request's row and rebuilds from the store what a Provision holds
// in memory, so that the request goes on where it stands.
func (p *Provision) load(ctx context.Context, now time.Time) (op.Progress, error) {
	q, err := p.env.Store.Request(ctx, p.demand.Repository, p.demand.RunID, p.demand.RequestID)
	if err != nil {
		return op.Again, fmt.Errorf("read request %s: %w", p.demand.RequestID, err)
	}
	if p.demand.DefaultRuntime {
		p.demand.Spec.MaxRuntime = q.Spec.MaxRuntime
	}
	if !q.Spec.Equal(p.demand.Spec) {
		return op.Done, fmt.Errorf("request %s: %w", q.RequestID, ErrSpecDiffers)
	}
	p.reload()
	p.q, p.readAt = q, now
	if err := p.loadHosts(ctx); err != nil {
		return op.Again, err
	}
	p.loaded = true
	p.checkReplaced = q.ReplacementOf != nil && p.untouched()
	p.checkLimit = q.MaxHosts > 0 && p.untouched()
	if q.Released() || q.Settled() {
		p.booking.late = p.booking.done
	}
	return op.Again, nil
}

// reload has the row loaded by the next step, and drops what belongs to the row as it
// was: loadHosts finds again what was claimed since, and the ledgers say what is
// reserved, as another caller may have lowered that. A round that has begun is dropped with
// it, since its hosts may serve the request no more.
func (p *Provision) reload() {
	p.loaded, p.search, p.checkReplaced, p.checkLimit = false, waiting, false, false
	p.sel, p.unrecorded, p.starting, p.launcher, p.full, p.refusal = selection{}, nil, nil, Launcher{}, nil, nil
	p.round, p.unlabeled, p.found = nil, nil, nil
	p.booking.hosts, p.booking.rooms = 0, nil
}

// loadHosts reads the request's hosts: those that its row names, those whose records name the request because
// a crash came between the claim and the write of the row, and those that this operation has seen before.
func (p *Provision) loadHosts(ctx context.Context) error {
	records, _, err := p.env.Hosts.OfRequest(ctx, p.q, p.known())
	if err != nil {
		return err
	}
	p.hosts = map[string]lifecycle.Record{}
	for _, r := range records {
		p.noteClaim(r)
	}
	for _, r := range p.unrecorded {
		p.noteFound(r.HostKey)
	}
	return nil
}

// known are the keys of the hosts that this operation has seen. The index may not list them yet.
func (p *Provision) known() []string { return slices.Sorted(maps.Keys(p.hosts)) }

// noteClaim notes a host that serves the request. What a crash or a lost answer made
// uncertain may be found more than once: it counts once.
func (p *Provision) noteClaim(r lifecycle.Record) {
	p.hosts[r.HostKey] = r
	known := func(w lifecycle.Record) bool { return w.HostKey == r.HostKey }
	if !p.q.Has(r.HostKey) && !slices.ContainsFunc(p.unrecorded, known) {
		p.unrecorded = append(p.unrecorded, r)
	}
}

// noteFound notes a host that is not in the row, and may not have been claimed by this operation. It matters within limits: see claimAgain.
func (p *Provision) noteFound(key string) {
	if !p.limited() {
		return
	}
	if p.found == nil {
		p.found = map[string]bool{}
	}
	p.found[key] = true
}

// recordClaims writes the claimed hosts into the request row. The write is the check that
// docs/design.md#operations asks for after a claim: it fails if the run has been
// released since, and then the claims are undone.
func (p *Provision) recordClaims(ctx context.Context, now time.Time) (op.Progress, error) {
	if changed, err := p.claimAgain(ctx); err != nil || changed {
		return op.Again, err
	}
	q := p.reserved()
	q.Taken = slices.Clone(q.Taken)
	for _, r := range p.unrecorded {
		q.Taken = append(q.Taken, lifecycle.Taken{HostKey: r.HostKey, InstanceID: r.InstanceID, Reused: r.Assignment > 1})
	}
	return p.write(ctx, q, now, func() {
		p.observeTaken(q.Taken[len(q.Taken)-len(p.unrecorded):])
		p.unrecorded, p.looks = nil, 0
		p.search = reserving
	})
}

// claimAgain writes the records of hosts that were found, and not claimed by this operation just now. Another caller may have taken one out of
// the row, as it saw no room for it, and be about to give it back: that fails then. If another operation wrote a record first, the row is loaded
// again.
func (p *Provision) claimAgain(ctx context.Context) (changed bool, err error) {
	for i, r := range p.unrecorded {
		if !p.found[r.HostKey] {
			continue
		}
		stored, err := p.env.Store.UpdateInstance(ctx, p.hosts[r.HostKey])
		switch {
		case errors.Is(err, lifecycle.ErrConflict):
			p.reload()
			return true, nil
		case err != nil:
			return false, fmt.Errorf("claim %s again: %w", r.InstanceID, err)
		}
		p.Events.Effects++
		p.unrecorded[i], p.hosts[r.HostKey] = stored, stored
		delete(p.found, r.HostKey)
	}
	return false, nil
}

// write replaces the request row and then does what follows. If another operation
// wrote it first, the row is loaded again.
func (p *Provision) write(ctx context.Context, q lifecycle.Request, now time.Time, then func()) (op.Progress, error) {
	if !q.Settled() {
		q.DueAt = now.Add(p.env.Timing.Takeover)
	}
	stored, err := p.env.Store.UpdateRequest(ctx, q)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		p.reload()
		return op.Again, nil
	case err != nil:
		// The write may have taken effect. A repeat would then lose to itself, and load the row.
		return op.Again, fmt.Errorf("write request %s: %w", q.RequestID, err)
	}
	p.Events.Effects++
	p.q, p.readAt = stored, now
	then()
	if stored.Settled() || stored.Released() {
		p.search = waiting
	}
	return op.Again, nil
}

// Provisioner begins and resumes requests and releases. Its exported fields are its parts: they are set
// before the first call and not changed after it. It is safe for concurrent use.
type Provisioner struct {
	Store   ports.Store
	Queue   ports.Queue
	Compute ports.Machines
	GitHub  ports.GitHub
	// GitHubJobs registers job-scoped runners; nil if there are no job pools.
	GitHubJobs ports.GitHubJobs
	Hosts      *hosts.Hosts
	Quota      *quota.Ledger
	Batches    *gather.Batches

	Pools   map[string]ports.Pool
	Classes map[string]ports.Class
	// Sells reports whether the cloud has an instance type that satisfies a class and
	// matches each of the lists of patterns; nil if only a launch can show that.
	Sells func(ports.Class, ...[]string) bool
	// Outside says why no type that the request of an order allows is within the bounds of its pool; empty: some may be.
	Outside func(lifecycle.LaunchOrder) (why string)
	// Exhausted are the offerings of a usage class that were short of capacity
	// recently: a launch leaves them out.
	Exhausted func(lifecycle.UsageClass) []lifecycle.Offering
	Timing    ports.Timing
	Log       hclog.Logger
	Observer  ports.Observer
	Ops       *op.Driver

	claiming claiming
}
