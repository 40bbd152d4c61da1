package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// selection is one pass over the pool: first the queue, then the index for hosts whose
// message was lost. Hosts that are bound to the run's trust key come first. Fresh ones,
// which no run has used yet, come second, since any run could use them.
type selection struct {
	// open are the messages that were received and not tried yet. fresh are the
	// messages of fresh hosts, which wait until no bound host is left.
	open, fresh []lifecycle.Delivery
	// spent are the handles of messages to delete, unfit those of messages to return when the pass ends. An
	// unfit message stays hidden until then: returned earlier, it would be received again at once.
	spent, unfit []string
	// candidates come from the index, after the queue is empty. newestDone: it was asked for the newest hosts of a pool without a queue.
	candidates []candidate
	queueDone  bool
	newestDone bool
	// The index is asked for hosts that are bound to the run's trust key, then for
	// fresh ones, and then for fresh on-demand ones if spot capacity has run out.
	ofKey, ofNobody, fallback indexed
	// stopped are hosts to be started, once no other is left. askedStopped: they were listed.
	stopped      []lifecycle.Record
	askedStopped bool
	// took are the groups whose hosts it has taken, and asleep their newest resting hosts, which are to be awake instead.
	took   []hosts.Group
	asleep []lifecycle.Record
	waking lifecycle.Decision
	// resting counts the groups that were asked for hosts that rest, before the queue.
	resting int
	// rounds counts the receives, to bound a pass over a queue full of unfit messages.
	rounds int
	// missed says why it could not have the idle hosts that it found.
	missed []arrival.Miss
}

// indexed is how far a listing of the index has been read.
type indexed struct {
	after string
	pages int
	done  bool
}

// indexPages is how many pages of a listing are read at most. The bound is reached only
// if, of a thousand idle hosts that the run may have, none has a type that it asks for.
const indexPages = 10

// maxRounds is how often one selection receives from the queue at most, so that it does not hide the whole
// queue from others. The index finds the hosts of the messages that it does not reach.
const maxRounds = 20

func (s selection) state() []any {
	var took []string
	for _, g := range s.took {
		took = append(took, g.String())
	}
	var candidates []lifecycle.Message
	var chosen []string
	for _, c := range s.candidates {
		candidates, chosen = append(candidates, c.Message), append(chosen, c.chosen.String())
	}
	return []any{
		s.open, s.fresh, s.spent, s.unfit, candidates, chosen, s.queueDone, s.ofKey.state(), s.ofNobody.state(), s.fallback.state(), s.rounds, took, s.asleep, string(s.waking.Action), s.resting, s.newestDone, s.stopped, s.askedStopped,
	}
}

func (i indexed) state() []any { return []any{i.after, i.pages, i.done} }

// held counts the messages in hand, which must be deleted or returned.
func (s selection) held() int { return len(s.open) + len(s.fresh) + len(s.spent) + len(s.unfit) }

func (p *Provision) queueName() lifecycle.QueueName {
	return lifecycle.QueueName{ResourceClass: p.q.Spec.ResourceClass, UsageClass: p.q.Spec.UsageClass}
}

// lacks is how many hosts the request still lacks, within its reservation.
func (p *Provision) lacks() int {
	may := p.q.Spec.Count
	if p.limited() {
		may = min(may, p.booking.hosts)
	}
	return max(0, may-p.taken())
}

// selectHosts makes one step of the selection. If GitHub refuses a job-scoped host, the selection ends.
func (p *Provision) selectHosts(ctx context.Context, now time.Time) (op.Progress, error) {
	progress, err := p.selectNext(ctx, now)
	if err != nil {
		err = p.heldByGitHub(ctx, err, now)
	}
	if p.jobScoped() && errors.Is(err, lifecycle.ErrRefused) {
		p.refusal = err
		return op.Again, nil
	}
	return progress, err
}

// selectNext makes the first step that applies: it claims, receives, asks the index,
// records claims, settles messages or begins a launch.
func (p *Provision) selectNext(ctx context.Context, now time.Time) (op.Progress, error) {
	s := &p.sel
	if p.lacks() > 0 {
		if err := p.mint(ctx, now); err != nil {
			return op.Again, err
		}
	}
	switch {
	case p.lacks() > 0 && len(s.open) > 0:
		return p.tryDeliveries(ctx, now)
	case p.lacks() > 0 && len(s.candidates) > 0:
		return p.tryCandidates(ctx, now)
	case p.lacks() > 0 && !p.queued() && !s.newestDone:
		return p.findNewest(ctx, now)
	case p.queued() && p.lacks() > p.policy().Awake && s.resting < len(p.restingKeys()):
		return p.findResting(ctx, now)
	case p.queued() && p.lacks() > len(s.fresh) && !s.queueDone:
		return p.receive(ctx, now)
	case p.lacks() > 0 && len(s.fresh) > 0 && !s.ofKey.done:
		return p.askIndex(ctx, p.queueName(), p.trustKey(), &s.ofKey, now)
	case p.lacks() > 0 && len(s.fresh) > 0:
		s.open, s.fresh = s.fresh, nil
		return op.Again, nil
	case p.lacks() > 0 && len(s.stopped) > 0:
		return p.claimStopped(ctx, now)
	case len(p.unrecorded) > 0: // all that the queue gave, in one write
		return p.recordClaims(ctx, now)
	case s.held() > 0:
		return p.settleMessages(ctx)
	case p.lacks() > 0 && !s.ofKey.done:
		return p.askIndex(ctx, p.queueName(), p.trustKey(), &s.ofKey, now)
	case p.lacks() > 0 && !s.ofNobody.done && p.env.Pools[p.q.Spec.Pool].HasUnused():
		return p.askIndex(ctx, p.queueName(), "", &s.ofNobody, now)
	case p.lacks() > 0 && !s.fallback.done && p.q.OnDemand && p.env.Pools[p.q.Spec.Pool].HasUnused():
		onDemand := lifecycle.QueueName{ResourceClass: p.q.Spec.ResourceClass, UsageClass: lifecycle.UsageOnDemand}
		return p.askIndex(ctx, onDemand, "", &s.fallback, now)
	case p.lacks() > 0 && !s.askedStopped && p.policy().MayStop():
		return p.findStopped(ctx, now)
	case len(p.starting) > 0:
		return p.startMachine(ctx, now)
	case p.lacks() == 0 && len(s.asleep) > 0:
		return p.wakeOne(ctx, now)
	case p.lacks() == 0 && len(s.took) > 0:
		return p.findAsleep(ctx, now)
	case p.lacks() > 0 && !now.Before(p.retryAt) && now.Before(p.q.Deadline):
		if err := p.mayLaunch(ctx); err != nil {
			p.deferred = true
			return op.Again, err
		}
		if p.deferred { // by now a host may be idle
			p.deferred, p.sel = false, selection{}
			return op.Again, nil
		}
		return p.intend(ctx, now)
	}
	p.observeClaim(now)
	p.search = waiting
	return op.Again, nil
}

// receive receives messages from the queue, at most as many as hosts are needed. It makes one call at first, and after full answers twice as many
// as before at once: what asks an empty queue waits for nothing.
func (p *Provision) receive(ctx context.Context, now time.Time) (op.Progress, error) {
	s := &p.sel
	calls := p.env.Hosts.Some(min(max(1, s.rounds), maxRounds-s.rounds, (p.lacks()+ports.ReceiveAtMost-1)/ports.ReceiveAtMost))
	got, errs := make([][]lifecycle.Delivery, calls), make([]error, calls)
	p.env.Hosts.Together(ctx, &p.Events, calls, func(ctx context.Context, i int, _ *op.Recorder) {
		got[i], errs[i] = p.env.Queue.Receive(ctx, p.queueName(), min(ports.ReceiveAtMost, p.lacks()-i*ports.ReceiveAtMost))
	})
	var err error
	for i := range calls {
		err = cmp.Or(err, p.received(got[i], errs[i], now))
	}
	return op.Again, err
}

// received takes the answer of one receive.
func (p *Provision) received(got []lifecycle.Delivery, err error, now time.Time) error {
	if errors.Is(err, lifecycle.ErrRefused) {
		// The queue is a hint: without it the index lists the idle hosts.
		p.env.Log.Warn("queue not read; idle hosts are looked up in the index", logkey.Queue, p.queueName(), logkey.Error, err)
		got, err, p.sel.rounds = nil, nil, maxRounds
	}
	if err != nil {
		return fmt.Errorf("receive from queue %v: %w", p.queueName(), err)
	}
	p.sel.rounds++
	p.sel.queueDone = p.sel.queueDone || len(got) == 0 || p.sel.rounds >= maxRounds
	for _, d := range got {
		switch miss := p.unfit(d.Message); {
		case p.stale(d.Message, now), p.env.Pools[d.Message.Pool].ByCaches(): // the index has the hosts of such a pool, which had none when it was sent
			p.sel.spent = append(p.sel.spent, d.Handle)
		case miss != "":
			p.sel.missed = arrival.With(p.sel.missed, miss)
			p.sel.unfit = append(p.sel.unfit, d.Handle)
		case d.Message.TrustKey == "":
			p.sel.fresh = append(p.sel.fresh, d)
		default:
			p.sel.open = append(p.sel.open, d)
		}
	}
	return nil
}

// stale reports whether the host of this message is past its threshold, or will be
// within the pool's claim margin.
func (p *Provision) stale(m lifecycle.Message, now time.Time) bool {
	return !m.Threshold.After(now.Add(p.policy().ClaimMargin))
}

// largeEnough reports whether the host has what its class has now: the class may have grown since the host was launched.
func (p *Provision) largeEnough(m lifecycle.Message) bool {
	class := p.env.Classes[p.q.Spec.ResourceClass]
	return m.CPU >= class.CPU && m.MemoryMiB >= class.MemoryMiB
}

func (p *Provision) poolAllows(instanceType string) bool {
	patterns := p.env.Pools[p.q.Spec.Pool].InstanceTypes
	return len(patterns) == 0 || matchesAny(patterns, instanceType)
}

func (p *Provision) policy() lifecycle.Policy { return p.env.Hosts.Policy(p.q.Spec.Pool) }

func (p *Provision) trustKey() string { return p.policy().Reuse.TrustKey(p.q.Repository) }

// tryDeliveries claims the hosts of messages, some at once.
func (p *Provision) tryDeliveries(ctx context.Context, now time.Time) (op.Progress, error) {
	some := p.sel.open[:p.env.Hosts.Some(min(p.lacks(), len(p.sel.open)))]
	tries := make([]*attempt, 0, len(some))
	for _, d := range some {
		if !p.reserve(d.Message, now) { // the requests of jobs alone reserve such hosts, and have one each
			return op.Wait(reservedLook), nil
		}
		tries = append(tries, &attempt{candidate: candidate{Message: d.Message}, awake: true})
	}
	p.claim(ctx, tries, now)
	var open []lifecycle.Delivery
	for i, t := range tries {
		p.unreserve(t)
		if t.err != nil {
			open = append(open, some[i])
		} else {
			p.sel.spent = append(p.sel.spent, some[i].Handle)
		}
	}
	p.sel.open = append(open, p.sel.open[len(some):]...)
	return op.Again, firstError(tries)
}

// tryCandidates claims hosts that the index has, some at once.
func (p *Provision) tryCandidates(ctx context.Context, now time.Time) (op.Progress, error) {
	some := p.sel.candidates[:p.env.Hosts.Some(min(p.lacks(), len(p.sel.candidates)))]
	var tries []*attempt
	for _, c := range some {
		if p.reserve(c.Message, now) {
			tries = append(tries, &attempt{candidate: c})
		} else {
			p.sel.missed = arrival.With(p.sel.missed, arrival.MissLost) // it is being claimed by another request
		}
	}
	p.claim(ctx, tries, now)
	var open []candidate
	for _, t := range tries {
		p.unreserve(t)
		if t.err != nil {
			open = append(open, t.candidate)
		}
	}
	p.sel.candidates = append(open, p.sel.candidates[len(some):]...)
	return op.Again, firstError(tries)
}

// attempt is the claim of one host, in one write.
type attempt struct {
	candidate
	// awake: a host that rests is not taken.
	awake bool
	terms runnerTerms
	// host is the record of the claimed host. lost: another request has it. err is why neither is known, and made: the claim may have taken effect.
	host       lifecycle.Record
	lost, made bool
	err        error
}

func firstError(tries []*attempt) error {
	for _, t := range tries {
		if t.err != nil {
			return t.err
		}
	}
	return nil
}

// claim claims the hosts of messages. A conflict is not an error: the message was stale, or an earlier attempt of this operation took effect
// and its answer was lost.
func (p *Provision) claim(ctx context.Context, tries []*attempt, now time.Time) {
	for _, t := range tries { // the request of a job has one
		t.terms, t.err = p.termsFor(ctx, t.Message)
		if errors.Is(t.err, lifecycle.ErrConflict) {
			t.lost, t.err = true, nil
		}
	}
	p.env.Hosts.Together(ctx, &p.Events, len(tries), func(ctx context.Context, i int, _ *op.Recorder) {
		if t := tries[i]; t.err == nil && !t.lost {
			p.claimOne(ctx, t, now)
		}
	})
	for _, t := range tries {
		p.noteAttempt(ctx, t, now)
	}
}

// claimOne makes one claim. It changes nothing but the attempt.
func (p *Provision) claimOne(ctx context.Context, t *attempt, now time.Time) {
	c := p.claimOf(t.Message, t.terms, now.Add(p.policy().ClaimTimeout), now)
	c.Awake, c.Arrival.Chosen = t.awake, t.chosen.String()
	r, err := p.env.Store.ClaimInstance(ctx, c)
	switch {
	case errors.Is(err, lifecycle.ErrConflict) && slices.Contains(p.unknownClaims, t.HostKey):
		if r, err = p.env.Store.Instance(ctx, t.HostKey); err != nil {
			t.err = fmt.Errorf("read host %s: %w", t.InstanceID, err)
		}
		t.lost = err == nil && !hosts.Serves(r, p.q)
	case errors.Is(err, lifecycle.ErrConflict):
		t.lost = true
	case err != nil:
		t.made, t.err = true, fmt.Errorf("claim host %s: %w", t.InstanceID, err)
	}
	t.host = r
}

// noteAttempt notes what came of a claim.
func (p *Provision) noteAttempt(ctx context.Context, t *attempt, now time.Time) {
	switch {
	case t.err != nil:
		if t.made && !slices.Contains(p.unknownClaims, t.HostKey) {
			p.unknownClaims = append(p.unknownClaims, t.HostKey)
		}
		return
	case t.lost:
		p.sel.missed = arrival.With(p.sel.missed, arrival.MissLost)
		p.withdrawJIT(ctx)
		return
	}
	p.jit = jit{}
	p.noteClaim(t.host)
	p.noteGroup(t.Message)
	p.Events.RecordEffect(lifecycle.Event{
		At: now, InstanceID: t.host.InstanceID, Repository: t.host.Repository, RunID: t.host.RunID, RequestID: t.host.RequestID,
		Assignment: t.host.Assignment, Action: lifecycle.ActionClaim, From: "idle (pooled)", To: t.host.Condition(), Reason: t.host.Reason,
	})
}

// claimOf is the claim of a host that is to be ready by a time.
func (p *Provision) claimOf(m lifecycle.Message, terms runnerTerms, readyBy, now time.Time) lifecycle.Claim {
	return lifecycle.Claim{
		HostKey: m.HostKey, Assignment: m.Assignment, TrustKey: m.TrustKey, BindTo: p.trustKey(), Now: now, Margin: p.policy().ClaimMargin,
		RunID: p.q.RunID, RunAttempt: p.q.Spec.RunAttempt, Repository: p.q.Repository, RequestID: p.q.RequestID, Workflow: p.q.Workflow,
		MaxRuntime: p.q.Spec.MaxRuntime, Labels: terms.labels, Registration: terms.registration, Arrival: arrival.Of(p.q.CreatedAt, now, p.q.Wait, nil),
		JobsOf: p.q.Spec.JobsOf, Forks: p.q.Spec.Forks, GitHubRunnerID: terms.id, Threshold: readyBy,
	}
}

// settleMessages ends the pass over the queue, some batches at once. It deletes messages whose host was tried
// or that were stale, and returns those that did not fit or were not needed, for others to receive.
func (p *Provision) settleMessages(ctx context.Context) (op.Progress, error) {
	s := &p.sel
	for _, d := range slices.Concat(s.open, s.fresh) {
		s.unfit = append(s.unfit, d.Handle)
	}
	s.open, s.fresh = nil, nil
	if len(s.spent) > 0 {
		return op.Again, p.settleSome(ctx, &s.spent, p.env.Queue.Delete)
	}
	return op.Again, p.settleSome(ctx, &s.unfit, p.env.Queue.Return)
}

// settleSome does something with some of the messages, ten in each call, and keeps the handles of those whose call failed.
func (p *Provision) settleSome(ctx context.Context, handles *[]string, do func(context.Context, lifecycle.QueueName, ...string) error) error {
	batches := slices.Collect(slices.Chunk(*handles, ports.ReceiveAtMost))
	some := batches[:p.env.Hosts.Some(len(batches))]
	errs := make([]error, len(some))
	p.env.Hosts.Together(ctx, &p.Events, len(some), func(ctx context.Context, i int, _ *op.Recorder) { errs[i] = do(ctx, p.queueName(), some[i]...) })
	var left []string
	for i, batch := range batches {
		if i >= len(some) || errs[i] != nil {
			left = append(left, batch...)
		}
	}
	*handles = left
	if err := cmp.Or(errs...); err != nil {
		return fmt.Errorf("settle messages of queue %v: %w", p.queueName(), err)
	}
	return nil
}

// askIndex reads the next page of pooled hosts, whose message was lost or was received by
// another request: those that are bound to the trust key or, with "", the fresh ones. It
// is called for another page as long as the hosts of this one are not enough.
func (p *Provision) askIndex(ctx context.Context, q lifecycle.QueueName, trustKey string, at *indexed, now time.Time) (op.Progress, error) {
	limit := lifecycle.DefaultPageSize
	if !p.queued() && at.pages == 0 { // the newest were just taken by others, and the oldest are likely free
		limit = min(max(oldestAtLeast, 2*p.lacks()), limit)
	}
	page, err := p.env.Store.PooledInstances(ctx, p.q.Spec.Pool, q, trustKey, lifecycle.PageOf{After: at.after, Limit: limit})
	if err != nil {
		return op.Again, fmt.Errorf("list pooled hosts: %w", err)
	}
	at.after = page.Next
	at.pages++
	at.done = page.Next == "" || at.pages == indexPages
	p.addCandidates(page.Items, now)
	return op.Again, nil
}

// checkReplacement is the first step of a replacement: it is given up if the run was released. Release marks
// what it finds and then looks again, so one of the two sees the other.
func (p *Provision) checkReplacement(ctx context.Context, now time.Time) (op.Progress, error) {
	of, err := p.env.Store.Request(ctx, p.q.Repository, p.q.RunID, p.q.ReplacementOf.RequestID)
	gone := errors.Is(err, lifecycle.ErrNotFound)
	if err != nil && !gone {
		return op.Again, fmt.Errorf("read request %s: %w", p.q.ReplacementOf.RequestID, err)
	}
	if gone || of.Released() {
		q := p.q
		q.ReleasedAt, q.Outcome, q.Reason = now, lifecycle.OutcomeReleased, "the run was released"
		return p.write(ctx, q, now, func() {})
	}
	p.checkReplaced = false
	return op.Again, nil
}
