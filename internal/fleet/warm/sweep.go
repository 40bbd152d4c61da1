package warm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/provision"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/lifecycle/warmrequest"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Sweep has fresh hosts ready ahead of need, pool by pool: what policy.TopUp decides it carries out in small
// steps. A launch is written into the pool's own row before it is made, so that a crash repeats the same
// launch, and two replicas make it once. A pool whose launch fails keeps no other waiting.
type Sweep struct {
	op.Stages
	env   *Pools
	lines []line // to be topped up, the first in hand

	q        lifecycle.Request // the row of the pool in hand
	stored   bool              // false: it is not written yet
	launcher provision.Launcher
	launched []lifecycle.Taken // machines of the launch that were recorded
	retire   []hosts.Retirement
}

// line is one of the pools, and which of its fresh hosts: those that wait, or those that are stopped. Each has a row of its own.
type line struct {
	pool string
	kind lifecycle.RequestKind
}

// NewSweep begins a sweep.
func (w *Pools) NewSweep() *Sweep {
	s := &Sweep{env: w, Stages: w.Ops.Stages("warm"), lines: w.all()}
	s.Next = s.load
	return s
}

// Some reports whether any pool launches hosts ahead of need.
func (w *Pools) Some() bool { return len(w.all()) > 0 }

// all are the pools that launch hosts ahead of need, by name.
func (w *Pools) all() []line {
	var lines []line
	for _, name := range slices.Sorted(maps.Keys(w.Pools)) {
		for _, kind := range []lifecycle.RequestKind{lifecycle.RequestWarm, lifecycle.RequestStopped} {
			if w.Pools[name].Ahead(kind) != nil {
				lines = append(lines, line{name, kind})
			}
		}
	}
	return lines
}

// Step does one step. A pool that fails in any step does not keep the others waiting, unless a
// dependency is unavailable: then all would fail.
func (s *Sweep) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	progress, err := s.Stages.Step(ctx, now)
	if err == nil || len(s.lines) == 0 || op.Transient(ctx, err) {
		return progress, err
	}
	s.failed(err)
	return s.skip()
}

// load takes up the next pool. A launch that a crash cut short comes first.
func (s *Sweep) load(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.lines) == 0 {
		return op.Done, nil
	}
	of := s.lines[0]
	id := warmrequest.ID(of.kind, of.pool)
	q, err := s.env.Store.Request(ctx, warmrequest.Repository, id, id)
	s.stored, s.launcher, s.launched, s.retire = err == nil, provision.Launcher{}, nil, nil
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		q = warmrequest.New(of.kind, s.env.warmSpec(lifecycle.Request{Kind: of.kind, Spec: lifecycle.Spec{Pool: of.pool}}), now)
	case err != nil:
		return op.Again, fmt.Errorf("read the launches of %s %s: %w", warmrequest.What(of.kind), of.pool, err)
	}
	s.q = q
	s.Next = s.decide
	if q.Launch != nil && !s.Events.Dry {
		s.Next = s.launch
	}
	return op.Again, nil
}

// skip goes on with the next pool.
func (s *Sweep) skip() (op.Progress, error) {
	s.lines = s.lines[1:]
	return s.Then(s.load)
}

// decide asks policy.TopUp, and writes down what it is about to do.
func (s *Sweep) decide(ctx context.Context, now time.Time) (op.Progress, error) {
	hosts, err := s.env.warmHosts(ctx, s.q, now)
	if err != nil {
		return op.Again, err
	}
	q := s.q
	q.Spec, q.Taken = s.env.warmSpec(q), hosts.taken
	if s.env.ahead(q) == nil {
		return s.close(ctx, q, hosts, now)
	}
	q = warmrequest.Checked(q, now)
	switch {
	case hosts.some:
		q.Failures, q.NotBefore = 0, time.Time{}
	case hosts.failed:
		q = warmrequest.LaunchFailed(q, now)
	}
	q, d, err := s.env.topUp(ctx, q, policy.WarmFacts{Hosts: hosts.seen, NotBefore: q.NotBefore}, now)
	if err != nil {
		return op.Again, err
	}
	s.tell(q, d, now)
	s.willRetire(d, hosts)
	if s.Events.Dry {
		return s.skip()
	}
	if d.Launch > 0 {
		return s.intend(ctx, q, min(d.Launch, provision.MaxCount), now)
	}
	if d.Full {
		return s.rest(ctx, q, s.look)
	}
	return s.rest(ctx, q, s.end)
}

// rest writes the row of a pool that launches nothing now, if that has changed, and goes on with next.
func (s *Sweep) rest(ctx context.Context, q lifecycle.Request, next func(context.Context, time.Time) (op.Progress, error)) (op.Progress, error) {
	q.OnDemand = false
	if len(q.Taken) == len(s.q.Taken) && q.Failures == s.q.Failures && q.OnDemand == s.q.OnDemand && q.DueAt.Equal(s.q.DueAt) {
		return s.Then(next)
	}
	return s.write(ctx, q, next)
}

// willRetire notes which hosts go, once the row is written.
func (s *Sweep) willRetire(d policy.WarmDecision, fresh warmHosts) {
	s.retire = nil
	for _, id := range d.Retire {
		why := lifecycle.Because(d.Code, "not wanted in %s %s: %s", warmrequest.What(s.q.Kind), s.q.Spec.Pool, d.Reason)
		if unfit := fresh.unfit(id); unfit != "" {
			why = lifecycle.Because(lifecycle.ReasonWarmUnfit, "not wanted in %s %s: %s", warmrequest.What(s.q.Kind), s.q.Spec.Pool, unfit)
		}
		s.retire = append(s.retire, hosts.Retirement{Record: fresh.records[id], Why: why})
	}
}

// topUp asks the policy. What may keep a host from being launched or retired is asked only when one is to be.
func (w *Pools) topUp(ctx context.Context, q lifecycle.Request, facts policy.WarmFacts, now time.Time) (lifecycle.Request, policy.WarmDecision, error) {
	pool := q.Spec.Pool
	rules := w.ahead(q).Policy
	d := policy.TopUp(rules, facts, now)
	if d.Launch == 0 && len(d.Retire) == 0 {
		return q, d, nil
	}
	hold, err := w.Hosts.FleetHold(ctx)
	if err != nil {
		return q, d, err
	}
	if hold.InForce(now) {
		facts.Held = hold.String()
		d = policy.TopUp(rules, facts, now)
	}
	if d.Launch == 0 {
		return q, d, nil
	}
	q, instead, paused, err := w.whileLaunchesPause(ctx, q, now)
	if err != nil {
		return q, d, err
	}
	facts.Paused = paused
	if l, ok := w.Quota.MaximumOf(pool); ok {
		room, err := w.Quota.Read(ctx, l)
		if err != nil {
			return q, d, err
		}
		rules.Maximum, facts.Others = &l.Hosts, max(room.Ledger.Used()-len(facts.Hosts), 0)
	}
	d = policy.TopUp(rules, facts, now)
	d.Reason += instead
	return q, d, nil
}

// whileLaunchesPause is the row of a warm pool with what a pause of the pool and its breaker make of its next
// launch. While an operator pauses the pool none is launched. While the breaker is open no host is launched on spot
// ahead of need: on-demand instead, where the pool allows that, else none.
func (w *Pools) whileLaunchesPause(ctx context.Context, q lifecycle.Request, now time.Time) (_ lifecycle.Request, instead string, paused lifecycle.Reason, err error) {
	pause, err := w.Quota.PauseOf(ctx, q.Spec.Pool, now)
	if err != nil || pause.On() {
		return q, "", lifecycle.Reason{Code: lifecycle.ReasonPoolPaused, Text: pause.String()}, err
	}
	why, until, err := w.Quota.SpotPaused(ctx, q, now)
	switch {
	case err != nil || why == "":
		return q, "", lifecycle.Reason{}, err
	case !q.Spec.AllowOnDemand:
		return q, "", lifecycle.Because(lifecycle.ReasonSpotPaused, "%s; spot is paused until %s", why, hosts.ClockTime(until)), nil
	}
	q.OnDemand = true
	return q, fmt.Sprintf("; on demand until %s: %s", hosts.ClockTime(until), why), lifecycle.Reason{}, nil
}

// tell says what was decided on a pool, when that is news.
func (s *Sweep) tell(q lifecycle.Request, d policy.WarmDecision, now time.Time) {
	action := lifecycle.ActionKeep
	switch {
	case d.Launch > 0:
		action = lifecycle.ActionLaunch
	case len(d.Retire) > 0:
		action = lifecycle.ActionRetire
	}
	why := lifecycle.Because(d.Code, "%s %s: %s", warmrequest.What(q.Kind), q.Spec.Pool, d.Reason)
	s.Events.Collect("", action, why)
	if !s.Events.Dry && s.Events.Changed(lifecycle.Record{InstanceID: q.RunID}, why.Decision(action)) {
		s.Events.Record(op.RequestEvent(q, action, why, now))
	}
}

// intend writes the launch down before it is made. Where its launch template cannot be
// found the pool launches none in this sweep.
func (s *Sweep) intend(ctx context.Context, q lifecycle.Request, count int, now time.Time) (op.Progress, error) {
	version, err := s.env.Hosts.TemplateVersion(ctx, q.Spec.Pool)
	if err != nil {
		s.failed(fmt.Errorf("find the launch template of pool %s: %w", q.Spec.Pool, err))
		return s.rest(ctx, q, s.end)
	}
	refused, err := s.env.Quota.ImageRefused(ctx, q.Spec.Pool, version, now)
	switch {
	case err != nil:
		s.failed(err)
		return s.rest(ctx, q, s.end)
	case refused != "":
		s.env.Log.Warn("warm pool not topped up", logkey.Pool, q.Spec.Pool, logkey.Reason, refused)
		return s.rest(ctx, q, s.end)
	}
	var without []lifecycle.Offering
	if q.Shortage == "" { // else nothing was left to choose from: everything is tried again
		without = s.env.Exhausted(quota.UsageOf(q))
	}
	q = s.env.Provision.WithIntent(q, count, version, without)
	q.Deadline = now.Add(s.env.Hosts.Policy(q.Spec.Pool).CreationTimeout)
	s.launcher = provision.NewLauncher()
	return s.write(ctx, q, s.launch)
}

// failed notes why the pool in hand was not topped up. The next sweep tries again.
func (s *Sweep) failed(err error) {
	s.env.Log.Error("warm pool not topped up", logkey.Pool, s.lines[0].pool, logkey.Error, err)
	s.GoPast(fmt.Errorf("top up %s %s: %w", warmrequest.What(s.lines[0].kind), s.lines[0].pool, err))
}

// write writes the row of the current pool and goes on with next. If another replica wrote it
// first, that replica works on the pool.
func (s *Sweep) write(ctx context.Context, q lifecycle.Request, next func(context.Context, time.Time) (op.Progress, error)) (op.Progress, error) {
	var err error
	if s.stored {
		q, err = s.env.Store.UpdateRequest(ctx, q)
	} else {
		err = s.env.Store.CreateRequest(ctx, q)
	}
	switch {
	case errors.Is(err, lifecycle.ErrConflict), errors.Is(err, lifecycle.ErrExists):
		return s.skip()
	case err != nil:
		return op.Again, fmt.Errorf("write the launches of %s %s: %w", warmrequest.What(q.Kind), q.Spec.Pool, err)
	}
	s.Events.Effects++
	s.q, s.stored, s.Next = q, true, next
	return op.Again, nil
}

// look sees whether all who have the room of a full pool need it still. The next sweep
// launches into what is left.
func (s *Sweep) look(ctx context.Context, now time.Time) (op.Progress, error) {
	l, _ := s.env.Quota.MaximumOf(s.q.Spec.Pool)
	room, err := s.env.Quota.Read(ctx, l)
	if err != nil {
		return op.Again, err
	}
	if s.env.Quota.MayAudit(room.Ledger, now) {
		if err := s.env.Quota.Audit(ctx, room, now); err != nil {
			return op.Again, err
		}
	}
	return s.Then(s.end)
}

// launch does the next step of the launch of the row.
func (s *Sweep) launch(ctx context.Context, now time.Time) (op.Progress, error) {
	switch {
	case s.launcher.MustReserve(s.env.Provision, s.q, now):
		return s.reserveLaunch(ctx, now)
	case !s.launcher.Called():
		return s.callLaunch(ctx, now)
	case s.launcher.Recording():
		return s.record(ctx, now)
	}
	return s.closeLaunch(ctx, now)
}

// reserveLaunch makes room in the pool for the launch of the row, which is given up if
// another request has taken it since.
func (s *Sweep) reserveLaunch(ctx context.Context, now time.Time) (op.Progress, error) {
	_, reserved, err := s.launcher.Reserve(ctx, s.env.Provision, s.q, now)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		return op.Again, nil
	case err != nil || reserved:
		return op.Again, err
	}
	q := s.q
	q.Launch = nil
	return s.write(ctx, q, s.end)
}

// callLaunch makes the launch of the row, or finds what it has made before a crash. Later than its hosts had
// to be ready, or for a pool without warm hosts, it is not made any more.
func (s *Sweep) callLaunch(ctx context.Context, now time.Time) (op.Progress, error) {
	order, late := *s.q.Launch, !now.Before(s.q.Deadline) || s.env.ahead(s.q) == nil
	if err := s.launcher.Call(ctx, s.env.Provision, s.q, late, now); err != nil {
		s.failed(fmt.Errorf("launch %s: %w", plural.Of(order.Count, "host", "hosts"), err))
		return s.skip()
	}
	return op.Again, nil
}

// record writes the record of one launched machine. One that has a record already
// was recorded before a crash, or by another replica.
func (s *Sweep) record(ctx context.Context, now time.Time) (op.Progress, error) {
	if m := s.launcher.Machine(); m.State != lifecycle.MachineGone {
		r := lifecycle.LaunchedWarm(m, s.q, now, s.env.Hosts.Policy(s.q.Spec.Pool))
		r.Version = 1
		err := s.env.Store.CreateInstance(ctx, r)
		switch {
		case err == nil:
			e := op.RequestEvent(s.q, lifecycle.ActionLaunch, lifecycle.Reason{Code: r.ReasonCode, Text: r.Reason}, now)
			e.InstanceID, e.Assignment, e.To = r.InstanceID, r.Assignment, r.Condition()
			s.Events.RecordEffect(e)
		case !errors.Is(err, lifecycle.ErrExists):
			return op.Again, fmt.Errorf("record host %s: %w", m.InstanceID, err)
		}
		s.launched = append(s.launched, lifecycle.Taken{HostKey: m.HostKey, InstanceID: m.InstanceID})
	}
	s.launcher.Recorded()
	return op.Again, nil
}

// closeLaunch closes the launch. Where spot was short and may fall back, the rest is
// launched on-demand at once; the next launch tries spot again.
func (s *Sweep) closeLaunch(ctx context.Context, now time.Time) (op.Progress, error) {
	if err := s.env.Quota.SettleLaunch(ctx, s.q, s.launcher.Result, now); err != nil {
		return op.Again, err
	}
	q, short := s.q, s.launcher.Short
	wasSpot := quota.UsageOf(q) == lifecycle.UsageSpot
	q.Launch, q.Shortage, q.OnDemand = nil, "", false
	q.Taken = slices.Concat(q.Taken, s.launched)
	q = warmrequest.Checked(q, now)
	next := s.end
	if s.env.ahead(q) == nil {
		next = s.decide
	}
	if short != nil {
		q.Shortage = short.Reason
		s.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionLaunch, lifecycle.Because(lifecycle.ReasonShortage, "%s %s: %v", warmrequest.What(q.Kind), q.Spec.Pool, short), now))
		if wasSpot && q.Spec.AllowOnDemand {
			q.OnDemand = true
			next = s.decide
		}
	}
	return s.write(ctx, q, func(ctx context.Context, now time.Time) (op.Progress, error) {
		s.launched, s.launcher = nil, provision.Launcher{}
		s.Next = next
		return next(ctx, now)
	})
}

// end retires the next of the surplus hosts. A host that was claimed or changed in between stays.
func (s *Sweep) end(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.retire) == 0 {
		return s.skip()
	}
	if err := s.env.Hosts.Retire(ctx, &s.Events, s.retire[0], now); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		return op.Again, err
	}
	s.retire = s.retire[1:]
	return op.Again, nil
}
