package provision

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// rereadAfter is how often a waiting request or release reads its records again.
const rereadAfter = 5 * time.Second

// await brings the hosts to readiness, replaces those that fail, and settles
// the request when all are ready or its deadline is reached.
func (p *Provision) await(ctx context.Context, now time.Time) (op.Progress, error) {
	switch {
	case p.q.DueAt.Sub(now) < p.env.Timing.Takeover/2:
		return p.write(ctx, p.q, now, func() {}) // still alive
	case len(p.unlabeled) > 0:
		return p.setLabels(ctx, now)
	case len(p.round) > 0:
		return p.decideSome(ctx, now)
	case len(p.discarded) > 0 && !now.Before(p.withdrawAt):
		return p.withdrawStandby(ctx, now)
	case p.lostHost():
		return p.giveUpLost(ctx, now)
	case p.unheld() != "" && p.env.Hosts.GitHubHealth.Away(now):
		return p.holdHost(ctx, p.unheld(), now)
	case p.unregistered() != "":
		return p.registerHost(ctx, now)
	case len(p.ready()) >= p.q.Spec.Count, !now.Before(p.q.Deadline):
		return p.settle(ctx, now)
	case (p.lacksQuota() || p.lacks() > 0) && !now.Before(p.retryAt):
		p.sel, p.search = selection{}, reserving
		return op.Again, nil
	}
	return p.look(ctx, now)
}

// ready are the taken hosts that run.
func (p *Provision) ready() []lifecycle.Taken {
	var ready []lifecycle.Taken
	for _, t := range p.q.Taken {
		if p.hosts[t.HostKey].State == lifecycle.StateRunning {
			ready = append(ready, t)
		}
	}
	return ready
}

// unready are the taken hosts that do not run yet.
func (p *Provision) unready() []string {
	var keys []string
	for _, t := range p.q.Taken {
		if r, ok := p.hosts[t.HostKey]; ok && r.State != lifecycle.StateRunning {
			keys = append(keys, t.HostKey)
		}
	}
	return keys
}

// firstWaits are the waits after the first looks, in parts of Timing.Poll. An idle agent reads its record
// every 500 ms, so of the hosts that were claimed more than half have answered after 340 ms and nearly all
// after 580 ms: the looks of the first second come then, and are no more of them for it.
var firstWaits = []float64{1.36, 0.48, 0.48, 2.68}

// untilNextLook is how long a round without an answer waits.
func (p *Provision) untilNextLook() time.Duration {
	poll := p.env.Timing.Poll
	if p.looks < len(firstWaits) {
		poll = time.Duration(firstWaits[p.looks] * float64(poll))
	}
	p.looks++
	return poll
}

// look begins a round: one batched read of what the agents say, or now and
// then of the records. The first look comes at once.
func (p *Provision) look(ctx context.Context, now time.Time) (op.Progress, error) {
	keys := p.unready()
	if !p.rereadAt.IsZero() && !now.Before(p.rereadAt) {
		p.rereadAt = now.Add(rereadAfter)
		return p.readRecords(ctx, keys)
	}
	if p.rereadAt.IsZero() {
		p.rereadAt = now.Add(rereadAfter)
	}
	reports, err := p.env.Hosts.Reports(ctx, keys, now)
	if err != nil {
		return op.Again, err
	}
	p.reports, p.labeled = reports, map[string]lifecycle.Facts{}
	maps.Copy(p.heard, reports)
	if unheard := p.unheard(); len(unheard) > 0 && p.cloudLook(now) {
		p.lookForDead(ctx, unheard, now)
	}
	for _, key := range keys {
		d := p.decision(key, now)
		if d.Action != lifecycle.ActionKeep {
			p.round = append(p.round, key)
		}
		if d.SetLabels {
			p.unlabeled = append(p.unlabeled, key)
		}
	}
	if len(p.round) > 0 {
		return op.Again, nil
	}
	return op.Wait(p.untilNextLook()), nil
}

// readRecords reads again what a sweep or another replica may have changed: the
// unready hosts, and the request itself, which may have been released. If nothing
// has changed, it counts as a round without an answer.
func (p *Provision) readRecords(ctx context.Context, keys []string) (op.Progress, error) {
	records, err := p.env.Store.Instances(ctx, keys)
	if err != nil {
		return op.Again, fmt.Errorf("read hosts of request %s: %w", p.q.RequestID, err)
	}
	changed := false
	for _, r := range records {
		if r.Version > p.hosts[r.HostKey].Version {
			p.hosts[r.HostKey] = r
			changed = true
		}
	}
	q, err := p.env.Store.Request(ctx, p.q.Repository, p.q.RunID, p.q.RequestID)
	if err != nil {
		return op.Again, fmt.Errorf("read request %s: %w", p.q.RequestID, err)
	}
	if q.Version != p.q.Version {
		p.reload()
		changed = true
	}
	if changed {
		return op.Again, nil
	}
	return op.Wait(p.untilNextLook()), nil
}

func (p *Provision) facts(key string) lifecycle.Facts {
	facts := lifecycle.Facts{Record: p.hosts[key], Request: &p.q}
	if report, ok := p.reports[key]; ok {
		facts.Report = &report
	}
	if m, ok := p.dead[key]; ok {
		facts.Cloud = &m
	}
	if l, ok := p.labeled[key]; ok && l.Record.Version == facts.Record.Version {
		facts.LabelsSet, facts.Runner = l.LabelsSet, l.Runner
	}
	return facts
}

// labelsAgain is how long after a call for labels that GitHub did not answer it is repeated. Each costs as much as five reads.
const labelsAgain = time.Second

// setLabels sets the labels of the hosts that listened when they were claimed, at once: each call takes a
// while. What GitHub did not answer is asked again in the next round, and keeps no other host from being ready.
func (p *Provision) setLabels(ctx context.Context, now time.Time) (op.Progress, error) {
	unlabeled := make([]lifecycle.Facts, 0, len(p.unlabeled))
	for _, key := range p.unlabeled {
		unlabeled = append(unlabeled, p.facts(key))
	}
	p.unlabeled = nil
	answers, err := p.env.Hosts.SetAllLabels(ctx, unlabeled, now)
	for _, facts := range answers {
		if key := facts.Record.HostKey; facts.LabelsSet || facts.Runner != nil {
			p.labeled[key] = facts
		} else {
			p.round = slices.DeleteFunc(p.round, func(k string) bool { return k == key })
		}
	}
	if err != nil && len(p.round) == 0 {
		p.env.Log.Warn("labels not set; the call is repeated", logkey.Request, p.q.RequestID, logkey.Error, err)
		return op.Wait(labelsAgain), nil
	}
	return op.Again, nil
}

func (p *Provision) decision(key string, now time.Time) lifecycle.Decision {
	return p.env.Hosts.Decide(p.facts(key), now)
}

// Heard are the reports of the hosts as the request has last read them, by host key. One that was ready before has none.
func (p *Provision) Heard() map[string]lifecycle.Report { return p.heard }

// decideSome carries out the decisions on some hosts of the round.
func (p *Provision) decideSome(ctx context.Context, now time.Time) (op.Progress, error) {
	some := p.round[:p.env.Hosts.Some(len(p.round))]
	facts, results := make([]lifecycle.Facts, len(some)), make([]reconciled, len(some))
	for i, key := range some {
		facts[i] = p.facts(key)
	}
	p.env.Hosts.Together(ctx, &p.Events, len(some), func(ctx context.Context, i int, j *op.Recorder) {
		results[i].after, results[i].decision, results[i].err = p.env.Hosts.ReconcileOneOfMany(ctx, j, facts[i], now)
	})
	var err error
	var open []string
	for i, r := range results {
		if r.err != nil {
			err, open = cmp.Or(err, r.err), append(open, some[i])
			continue
		}
		p.discard(r.decision.Action, facts[i].Record)
		p.hosts[some[i]] = r.after
	}
	p.round = append(open, p.round[len(some):]...)
	return op.Again, err
}

// reconciled is what came of one of several hosts.
type reconciled struct {
	after    lifecycle.Record
	decision lifecycle.Decision
	err      error
}

// discard notes the registration that a host no longer uses: when it is to register again, and, should this replica not have deleted it
// since, when it has.
func (p *Provision) discard(action lifecycle.Action, before lifecycle.Record) {
	switch action {
	case lifecycle.ActionReregister:
		p.discarded = append(p.discarded, before)
	case lifecycle.ActionReady:
		old, ok := hosts.Discarded(before)
		if !ok || p.withdrawn[old.RunnerName] {
			return
		}
		if !slices.ContainsFunc(p.discarded, func(r lifecycle.Record) bool { return r.RunnerName == old.RunnerName }) {
			p.discarded = append(p.discarded, old)
		}
		if len(p.discarded) <= fewDeletions {
			p.withdrawAt = time.Time{}
		}
	}
}

// fewDeletions do not wait for GitHub's limits.
const fewDeletions = 10

// withdrawAgain is how long after deletions that GitHub did not make they are tried again, while the request waits for its hosts.
const withdrawAgain = 5 * time.Second

// withdrawStandby deletes the registrations that the hosts no longer use.
func (p *Provision) withdrawStandby(ctx context.Context, now time.Time) (op.Progress, error) {
	left := p.env.Hosts.WithdrawStandby(ctx, p.discarded...)
	if p.withdrawn == nil {
		p.withdrawn = map[string]bool{}
	}
	for _, r := range p.discarded {
		p.withdrawn[r.RunnerName] = true
	}
	for _, r := range left {
		delete(p.withdrawn, r.RunnerName)
	}
	p.discarded, p.withdrawAt = left, now.Add(withdrawAgain)
	return op.Again, nil
}

// lostHost reports whether a taken host no longer serves the request.
func (p *Provision) lostHost() bool {
	for _, t := range p.q.Taken {
		if r, ok := p.hosts[t.HostKey]; !ok || !hosts.Serves(r, p.q) {
			return true
		}
	}
	return false
}

// giveUpLost takes the lost hosts off the request's list; while there is time they are replaced.
func (p *Provision) giveUpLost(ctx context.Context, now time.Time) (op.Progress, error) {
	q := p.q
	q.Taken = nil
	for _, t := range p.q.Taken {
		if r, ok := p.hosts[t.HostKey]; ok && hosts.Serves(r, p.q) {
			q.Taken = append(q.Taken, t)
		} else if ok {
			q.ShortOf(fmt.Sprintf("host %s was lost: %s", t.InstanceID, r.Reason), now)
			q.HoldBack(lifecycle.Reason{Code: r.ReasonCode, Text: q.Shortage})
		}
	}
	return p.write(ctx, q, now, func() {})
}

// settle writes the outcome. With enough ready hosts the request gives up the others;
// with too few it gives up all except those that already run a job. Two callers of one
// request may together have claimed more hosts than it asked for.
func (p *Provision) settle(ctx context.Context, now time.Time) (op.Progress, error) {
	q := p.q
	ready := p.ready()
	keeps, err := p.keeps(ctx, len(ready))
	if err != nil {
		return op.Again, err
	}
	if keeps < min(len(ready), q.Spec.Count) {
		p.booking.hosts = keeps
		if p.exceeds(now) { // it asks for room first
			return op.Again, nil
		}
	}
	ready = ready[:keeps]
	all := len(ready) == p.serving()
	q.ExpiresAt = now.Add(p.env.Timing.KeepRequests)
	q.DueAt = now.Add(p.env.Timing.Takeover)
	if len(ready) >= q.Spec.MinimumCount {
		q.Outcome, q.Taken = lifecycle.OutcomeReady, ready
		if q.Kind != lifecycle.RequestReplacement { // which is as attended as what it stands in for
			q.Unattended = !p.attended && q.Kind != lifecycle.RequestForSpare // that waits for as long as it takes
		}
		q.Reason = fmt.Sprintf("%d of %s ready", len(ready), plural.Of(q.Spec.Count, "host is", "hosts are"))
		if all && p.attended && !p.reservedMore(len(ready)) {
			q.DueAt = time.Time{}
		}
	} else {
		busy, err := p.busy(ctx, ready, now)
		if err != nil {
			return op.Again, err
		}
		q.Outcome, q.Taken = lifecycle.OutcomeShort, busy
		q.Reason = p.shortReason(len(ready))
	}
	return p.write(ctx, q, now, func() {
		p.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionSettle, settled(q), now))
		p.observeOutcome(q, now)
	})
}

// settled is why a request has its outcome.
func settled(q lifecycle.Request) lifecycle.Reason {
	if q.Outcome == lifecycle.OutcomeReady {
		return lifecycle.Reason{Code: lifecycle.ReasonRequestReady, Text: q.Reason}
	}
	return lifecycle.Reason{Code: lifecycle.ReasonRequestShort, Text: q.Reason}
}

// serving counts the hosts that are assigned to the request, taken or not.
func (p *Provision) serving() int {
	n := 0
	for _, r := range p.hosts {
		if hosts.Serves(r, p.q) {
			n++
		}
	}
	return n
}

// busy are those of the taken hosts that say so. Of one that says nothing it is
// not known: it is released as if it were busy, which ends no job.
func (p *Provision) busy(ctx context.Context, taken []lifecycle.Taken, now time.Time) ([]lifecycle.Taken, error) {
	keys := make([]string, 0, len(taken))
	for _, t := range taken {
		keys = append(keys, t.HostKey)
	}
	reports, err := p.env.Hosts.Reports(ctx, keys, now)
	if err != nil {
		return nil, err
	}
	var busy []lifecycle.Taken
	for _, t := range taken {
		if reports[t.HostKey].Busy {
			busy = append(busy, t)
		}
	}
	return busy, nil
}

// shortReason says what was found and what was missing.
func (p *Provision) shortReason(ready int) string {
	why := fmt.Sprintf("%d of %s ready within %s, %d had been taken",
		ready, plural.Of(p.q.Spec.Count, "host was", "hosts were"), p.q.Spec.Timeout, len(p.q.Taken))
	if p.q.Shortage != "" {
		why += "; " + p.q.Shortage
	}
	if p.q.QuotaReason != "" && p.q.Missing() > 0 {
		why += "; " + p.q.QuotaReason
	}
	if p.launchErr != nil {
		why += "; " + p.launchErr.Error()
	}
	return why
}

// finish brings what is left in line with a settled or released request, and says how it came out.
func (p *Provision) finish(ctx context.Context, now time.Time) (op.Progress, error) {
	if p.attended && p.q.Unattended {
		q := p.q
		q.Unattended = false
		return p.write(ctx, q, now, func() {})
	}
	if p.cleanup == nil && p.q.DueAt.IsZero() && !p.unwanted() && !p.booking.late {
		return p.outcome()
	}
	if p.cleanup == nil {
		p.cleanup = &requestCleanup{env: p.env, journal: &p.Events, q: p.q, known: p.known()}
	}
	progress, err := p.cleanup.Step(ctx, now)
	if err != nil || !progress.Done {
		return progress, err
	}
	p.q = p.cleanup.q
	for _, r := range p.cleanup.freed {
		delete(p.hosts, r.HostKey)
	}
	return p.outcome()
}

// unwanted reports whether hosts serve the request that it has no use for.
func (p *Provision) unwanted() bool {
	for _, r := range p.hosts {
		if hosts.Serves(r, p.q) && !p.q.Wants(r) {
			return true
		}
	}
	return false
}

func (p *Provision) outcome() (op.Progress, error) {
	switch {
	case p.q.Outcome == lifecycle.OutcomeShort:
		return op.Done, &ShortError{
			RequestID: p.q.RequestID, Ready: len(p.q.Taken), Wanted: p.q.Spec.Count,
			Minimum: p.q.Spec.MinimumCount, Why: p.q.Reason,
		}
	case p.q.Released():
		return op.Done, &ReleasedError{RunID: p.q.RunID}
	}
	return op.Done, nil
}

// cloudLookAfter is how often a waiting request asks the cloud for the hosts whose agent
// has never reported. A shorter interval spends EC2's request limits; a longer one lets
// a request wait for a machine that died while it booted.
const cloudLookAfter = 15 * time.Second

// unheard are the keys of the new hosts whose agent has not reported yet. No sweep checks
// them before their threshold, since only the cloud knows their state.
func (p *Provision) unheard() []string {
	return slices.DeleteFunc(p.unready(), func(key string) bool {
		_, heard := p.reports[key]
		return heard || p.hosts[key].State != lifecycle.StateCreated
	})
}

// cloudLook reports whether it is time to ask the cloud, and sets the next time. The
// answer to the first call is false: no agent can have reported by then.
func (p *Provision) cloudLook(now time.Time) bool {
	first := p.askCloud.IsZero()
	if !first && now.Before(p.askCloud) {
		return false
	}
	p.askCloud = now.Add(cloudLookAfter)
	return !first
}

// lookForDead notes which of the unheard hosts have lost their machine. The decisions
// that follow in this round use it.
func (p *Provision) lookForDead(ctx context.Context, unheard []string, now time.Time) {
	var records []lifecycle.Record
	for _, key := range unheard {
		records = append(records, p.hosts[key])
	}
	machines, err := p.env.Hosts.Describe(ctx, records, now)
	if err != nil {
		p.env.Log.Warn("EC2 does not answer; deciding without it", logkey.Error, err)
		return
	}
	for _, r := range records {
		if m, ok := machines[r.InstanceID]; ok && m.State == lifecycle.MachineGone {
			p.dead[r.HostKey] = m
		}
	}
}
