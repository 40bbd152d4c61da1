// Package explain answers operators: which hosts there are, what happened, and why a
// run or a host is as it is.
package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/scaledown"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/waiting"
	"github.com/remuda-ci/remuda/internal/recent"
)

// Explanation is why a run has, or has not yet, what it asked for.
type Explanation struct {
	Sentences []string
	Events    []lifecycle.Event
}

// explainEvents bounds the history in one explanation.
const explainEvents = 1000

// Explain describes a run's requests, its hosts and what each of them waits for, and its
// history, in which each job is that was refused a host. It returns ErrNotFound for a run that has none of these.
func (ex *Explainer) Explain(ctx context.Context, repository, runID string, now time.Time) (Explanation, error) {
	var e Explanation
	requests, err := ex.Store.RequestsOfRun(ctx, repository, runID)
	if err != nil {
		return e, fmt.Errorf("list requests of run %s: %w", runID, err)
	}
	jobs, err := ex.openJobsOf(ctx, repository, runID)
	if err != nil {
		return e, err
	}
	if e.Events, err = ex.newestEvents(ctx, repository, runID); err != nil {
		return e, err
	}
	if len(requests)+len(jobs)+len(e.Events) == 0 {
		return e, lifecycle.NotFound("run %s of %s has no request for hosts, no job that waits or runs, and no history of the last 24 hours (a job of a job pool is known until it ends)%s",
			runID, repository, ex.unknownYet(now))
	}
	hold, err := ex.Hosts.FleetHold(ctx)
	if err != nil {
		return e, err
	}
	e.Sentences = append(e.Sentences, compact(holdSentence(hold, now))...)
	for _, q := range requests {
		why, err := ex.whyRequest(ctx, q, now)
		if err != nil {
			return e, err
		}
		e.Sentences = append(e.Sentences, requestSentence(q, why, now))
		serving, leaving, err := ex.Hosts.OfRequest(ctx, q, nil)
		if err != nil {
			return e, err
		}
		about, err := ex.ofHosts(ctx, append(serving, leaving...), e.Events, hold, now)
		if err != nil {
			return e, err
		}
		e.Sentences = append(e.Sentences, about...)
	}
	for _, j := range jobs {
		about, err := ex.jobSentences(ctx, j, requests, hold, now)
		if err != nil {
			return e, err
		}
		e.Sentences = append(e.Sentences, about...)
	}
	refused := refusedNow(e.Events, jobs)
	e.Sentences = append(e.Sentences, refusedSentences(refused)...)
	for _, event := range e.Events {
		if !slices.Contains(refused, event) {
			e.Sentences = append(e.Sentences, eventSentence(event))
		}
	}
	return e, nil
}

// unknownYet says why a run may be unknown that is there: where forks get no host, its jobs wait until GitHub says whether it is one.
func (ex *Explainer) unknownYet(now time.Time) string {
	if ex.Hosts.GitHubHealth.RunsUnknown(now) {
		return "; GitHub does not answer, and some jobs are known only when it answers again"
	}
	return ""
}

// newestEvents are the last explainEvents of a run's history, oldest first.
func (ex *Explainer) newestEvents(ctx context.Context, repository, runID string) ([]lifecycle.Event, error) {
	var newest []lifecycle.Event
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
		return ex.Store.EventsOfRun(ctx, repository, runID, page)
	}
	for e, err := range listing.All(lifecycle.PageOf{Limit: explainEvents}, list) {
		if err != nil {
			return nil, fmt.Errorf("list events of run %s: %w", runID, err)
		}
		newest = append(newest, e)
		newest = newest[max(0, len(newest)-explainEvents):]
	}
	// Each operation writes its own together, so they are stored a little out of turn.
	slices.SortStableFunc(newest, byTime)
	return newest, nil
}

// whyRequest answers why a request waits; only an open one does.
func (ex *Explainer) whyRequest(ctx context.Context, q lifecycle.Request, now time.Time) (waiting.Answer, error) {
	if q.Settled() || q.Released() {
		return waiting.Answer{}, nil
	}
	pause, err := ex.PauseOf(ctx, q.Spec.Pool, now)
	return waiting.WhyRequest(waiting.RequestFacts{Request: q, Pause: pause, AwaySince: ex.Hosts.GitHubHealth.AwaySince(now)}), err
}

// requestSentence says what a request asked for and what it got, or why it waits.
func requestSentence(q lifecycle.Request, why waiting.Answer, now time.Time) string {
	if of := q.ReplacementOf; of != nil {
		return fmt.Sprintf("Request %s replaces host %s, which EC2 reclaimed. %s",
			q.RequestID, of.InstanceID, askedSentence(q, why, now))
	}
	return askedSentence(q, why, now)
}

func askedSentence(q lifecycle.Request, why waiting.Answer, now time.Time) string {
	s := q.Spec
	asked := fmt.Sprintf("Request %s%s asked for %d %s %s %s%s of pool %s at %s", q.RequestID, attempt(" of ", s.RunAttempt, ""), s.Count, s.ResourceClass, s.UsageClass,
		plural.Word(s.Count, "host", "hosts"), atLeast(s), s.Pool, hosts.ClockTime(q.CreatedAt))
	switch q.Outcome {
	case lifecycle.OutcomeReady:
		return fmt.Sprintf("%s and got %d.%s", asked, len(q.Taken), releasedPart(q))
	case lifecycle.OutcomeShort:
		if len(q.Taken) == 0 {
			return fmt.Sprintf("%s and got none: %s.", asked, q.Reason)
		}
		return fmt.Sprintf("%s and was rolled back: %s.", asked, q.Reason)
	}
	if q.Released() {
		return fmt.Sprintf("%s and was released at %s before it was ready.", asked, hosts.ClockTime(q.ReleasedAt))
	}
	return fmt.Sprintf("%s; it has taken %d, with %s left: %s%s. %s",
		asked, len(q.Taken), max(0, q.Deadline.Sub(now)).Round(time.Second), why.Text, sinceOf(why, now), why.Next)
}

// atLeast says how many of several hosts are enough.
func atLeast(s lifecycle.Spec) string {
	if s.Count == 1 {
		return ""
	}
	return fmt.Sprintf(" (at least %d)", s.MinimumCount)
}

// attempt names the attempt of a run within a sentence, between two texts, where it is known.
func attempt(before string, n int, after string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%sattempt %d%s", before, n, after)
}

func releasedPart(q lifecycle.Request) string {
	if !q.Released() {
		return ""
	}
	return fmt.Sprintf(" The run was released at %s.", hosts.ClockTime(q.ReleasedAt))
}

// ofHosts are the sentences about some hosts of a run, with what its history has of them.
func (ex *Explainer) ofHosts(ctx context.Context, records []lifecycle.Record, history []lifecycle.Event, hold fleethold.Hold, now time.Time) (sentences []string, err error) {
	facts, err := ex.Hosts.LoadFacts(ctx, records, now)
	if err != nil {
		return nil, err
	}
	for _, fact := range facts {
		fact.FleetHold = &hold
		sentences = append(sentences, ex.hostSentences(fact, history, now)...)
	}
	return sentences, nil
}

// hostSentences are about one host of a run: how it stands, what is noted on it, and what sweeps say of it.
func (ex *Explainer) hostSentences(facts lifecycle.Facts, history []lifecycle.Event, now time.Time) []string {
	r := facts.Record
	d := ex.Hosts.Decide(facts, now)
	at, _ := since(r, history)
	s := fmt.Sprintf("Host %s (%s) is %s since %s", r.InstanceID, r.InstanceType, r.Condition(), hosts.ClockTime(at))
	t := hostExplainer{env: ex, now: now, Facts: facts}
	if d.Action == lifecycle.ActionKeep {
		s += ": " + t.reason(d) + "."
	} else {
		s += fmt.Sprintf("; next: %s%s, since: %s.", d.Action, t.by(), t.reason(d))
	}
	sentences := append([]string{s}, t.marks(d)...)
	if d.Action == lifecycle.ActionKeep {
		sentences = append(sentences, compact(t.scaleDown())...)
	}
	return append(sentences, said(history, r, d.Code)...)
}

func eventSentence(e lifecycle.Event) string {
	what := string(e.Action)
	if e.To != "" && e.From != e.To {
		what = e.To
		if e.From != "" {
			what = e.From + " → " + e.To
		}
	}
	if e.Sweep != "" {
		what += fmt.Sprintf(" (%s sweep)", e.Sweep)
	}
	switch {
	case e.Action == lifecycle.ActionRefuseJob: // the reason says that the job gets no host
		return hosts.ClockTime(e.At) + " " + sentence(e.Reason)
	case e.InstanceID == "":
		return fmt.Sprintf("%s %s: %s", hosts.ClockTime(e.At), what, sentence(e.Reason))
	}
	return fmt.Sprintf("%s %s %s: %s", hosts.ClockTime(e.At), e.InstanceID, what, sentence(e.Reason))
}

// Explainer answers questions. Its exported fields are its parts: they are set before
// the first call and not changed after it. It is safe for concurrent use.
type Explainer struct {
	Store  ports.Store
	GitHub ports.GitHub
	// PauseOf reads the pause of a pool.
	PauseOf func(ctx context.Context, pool string, now time.Time) (pause.Pause, error)
	// BudgetAgainst finds the budget that keeps a repository's runs from more hosts; nil: none does.
	BudgetAgainst func(ctx context.Context, repository string, now time.Time) (*budget.Use, error)
	// JobStore keeps the jobs; nil: there are none. JobPools are the job pools.
	JobStore ports.JobStore
	JobPools map[string]ports.JobPool
	// JobURL returns where people see a job; nil: nowhere.
	JobURL    func(repository, runID string, jobID int64) string
	Hosts     *hosts.Hosts
	Scaledown *scaledown.Scaler
	// Options are those of scale-down; nil: it is off.
	Options *scaledown.Options
	Pools   map[string]ports.Pool

	open recent.Answers[map[string]lifecycle.Job]
}

// List pages through the hosts that match the filter, with their reports.
func (ex *Explainer) List(ctx context.Context, filter lifecycle.Filter, page lifecycle.PageOf, now time.Time) (
	lifecycle.Page[lifecycle.Record], map[string]lifecycle.Report, error,
) {
	got, err := ex.Store.ListInstances(ctx, filter, page)
	if err != nil {
		return got, nil, fmt.Errorf("list instances: %w", err)
	}
	reports, err := ex.ReportsOf(ctx, got.Items, nil, now)
	return got, reports, err
}

// ReportsOf reads the reports of records, by host key, as far as they may be believed. Those that are heard already are not read.
func (ex *Explainer) ReportsOf(
	ctx context.Context, records []lifecycle.Record, heard map[string]lifecycle.Report, now time.Time,
) (map[string]lifecycle.Report, error) {
	keys := make([]string, 0, len(records))
	for _, r := range records {
		if _, ok := heard[r.HostKey]; !ok {
			keys = append(keys, r.HostKey)
		}
	}
	reports, err := ex.Hosts.Reports(ctx, keys, now)
	if err == nil {
		maps.Copy(reports, heard)
	}
	return reports, err
}

// Healthy reports whether a host has reported of late. One that is drained or interrupted has marks of its own, and may be as well as any other.
func Healthy(r lifecycle.Record, report *lifecycle.Report, now time.Time, p lifecycle.Policy) bool {
	return r.State != lifecycle.StateTerminated && report != nil &&
		now.Sub(report.HeartbeatAt) < p.Silence
}

// Events lists the history after a page token, oldest first. With a run it is that run's only.
func (ex *Explainer) Events(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	got, err := ex.Store.EventsSince(ctx, page)
	if err != nil {
		return got, fmt.Errorf("list events: %w", err)
	}
	return got, nil
}

// History lists the newest events since a time and, if it is not zero, before until, at most limit, of a host or with an empty id of the whole fleet.
func (ex *Explainer) History(ctx context.Context, instanceID string, since, until time.Time, limit int) (lifecycle.HostHistory, error) {
	h, err := ex.Store.EventsOfInstance(ctx, instanceID, since, until, limit)
	if err != nil {
		return h, fmt.Errorf("list events: %w", err)
	}
	slices.SortStableFunc(h.Events, byTime) // each operation writes its own together
	return h, nil
}

// LastEvent is the page after which nothing has happened yet.
func (ex *Explainer) LastEvent(ctx context.Context) (lifecycle.PageOf, error) {
	after, err := ex.Store.LastEvent(ctx)
	if err != nil {
		return lifecycle.PageOf{}, fmt.Errorf("find the last event: %w", err)
	}
	return lifecycle.PageOf{After: after, Limit: explainEvents}, nil
}

// Counts are the live hosts of one pool.
type Counts struct {
	States map[lifecycle.State]int
	// Pooled of the idle ones may be claimed now. Any run may claim Fresh of those, since none has used them or their root volume, and Hot ones listen.
	Pooled, Fresh, Hot int
	// Stopped of the idle ones are stopped or about to be, and FreshStopped of those were never used.
	Stopped, FreshStopped int
}

// Count counts the live hosts by pool. It is for people: it goes through every host.
func (ex *Explainer) Count(ctx context.Context, now time.Time) (map[string]Counts, error) {
	counts := map[string]Counts{}
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		return ex.Store.ListInstances(ctx, lifecycle.Filter{States: lifecycle.LiveStates}, page)
	}
	for r, err := range listing.All(lifecycle.PageOf{Limit: 1000}, list) {
		if err != nil {
			return nil, fmt.Errorf("list instances: %w", err)
		}
		c, ok := counts[r.Pool]
		if !ok {
			c.States = map[lifecycle.State]int{}
		}
		c.States[r.State]++
		if r.Claimable(now, ex.Hosts.Policy(r.Pool).ClaimMargin) {
			c.Pooled++
			if r.Unused() {
				c.Fresh++
			}
			if r.Hot() {
				c.Hot++
			}
		}
		if r.Stopped() {
			c.Stopped++
			if r.Unused() {
				c.FreshStopped++
			}
		}
		counts[r.Pool] = c
	}
	return counts, nil
}

// scaleDown is what the next sweeps of scale-down may do about a host: one that
// they have marked, or one that serves a run and may be idle. Empty: nothing.
func (t *hostExplainer) scaleDown() string {
	r, p := t.Record, t.env.Options
	switch {
	case p == nil || r.State == lifecycle.StateTerminated:
		return ""
	case !r.OrphanAt.IsZero():
		return "The next scale-down asks GitHub for it once more, and ends it unless it is found there."
	case !r.IdleDetectedAt.IsZero():
		return fmt.Sprintf("The first scale-down after %s ends it if it still is idle and more are than may be.", t.when(r.IdleDetectedAt.Add(p.Policy.IdleConfirmation)))
	case r.State != lifecycle.StateRunning || !scaledown.Registers(r, t.now) || t.leftByScaleDown():
		return ""
	}
	return t.endOfYouth() + t.keptIdle()
}

// leftByScaleDown: as far as is known here, it leaves the host alone, idle or not.
func (t *hostExplainer) leftByScaleDown() bool {
	held := t.FleetHold != nil && t.FleetHold.InForce(t.now)
	busy := t.Report != nil && t.Report.Busy
	bypass := t.Cloud != nil && t.Cloud.Bypass
	return held || busy || bypass || t.env.Scaledown.WantedIdle(t.Record)
}

// endOfYouth says from when on scale-down may end the host, and after what.
func (t *hostExplainer) endOfYouth() string {
	p := t.env.Options
	from := p.Policy.YoungUntil(t.env.Scaledown.Candidate(t.Record, lifecycle.Machine{}))
	when := fmt.Sprintf("Each scale-down, every %s,", p.Interval())
	if from.After(t.now) {
		when = fmt.Sprintf("From %s on scale-down", t.when(from))
	}
	if p.Policy.IdleConfirmation > 0 {
		return fmt.Sprintf("%s may mark it as idle, if it is, and end it %s later if it is still.", when, p.Policy.IdleConfirmation)
	}
	return when + " may end it, if it is idle."
}

// keptIdle says how many idle hosts stay now, and by which period.
func (t *hostExplainer) keptIdle() string {
	period, ok := policy.Now(t.env.Options.Policy.Idle, t.now)
	if !ok || period.IdleCount == 0 {
		return ""
	}
	cron := period.Cron
	if period.TimeZone != "" {
		cron += " " + period.TimeZone
	}
	return fmt.Sprintf(" Of each owner %s while %s holds, as it does now.", plural.Of(period.IdleCount, "idle host stays", "idle hosts stay"), cron)
}

// warm says why a fresh host is there, which no run has asked for: how many its
// pool is to have, and by what. Empty for every other host.
func (t *hostExplainer) warm() string {
	r := t.Record
	if r.State != lifecycle.StateIdle || !r.Unused() {
		return ""
	}
	pool, ok := t.env.Pools[r.Pool]
	switch {
	case r.Renewed():
		return "Its root volume is new, so that a run of any repository may claim it."
	case !ok:
		return fmt.Sprintf("It was launched ahead of need for pool %s, which the configuration does not have any more: it is retired.", r.Pool)
	case r.ToStop && pool.Stopped != nil:
		wanted, of := pool.Stopped.Policy.Wanted(t.now)
		return fmt.Sprintf("It was launched to be stopped: pool %s is to have %s stopped by %s.", r.Pool, freshHosts(wanted), of)
	case r.ToStop:
		return fmt.Sprintf("It was launched to be stopped; by the configuration pool %s has no stopped fresh hosts any more: it is retired.", r.Pool)
	case pool.Warm == nil:
		return fmt.Sprintf("It was launched ahead of need; by the configuration pool %s has no warm hosts any more: it is retired.", r.Pool)
	}
	wanted, of := pool.Warm.Policy.Wanted(t.now)
	return fmt.Sprintf("It was launched ahead of need: warm pool %s is to have %s ready by %s.", r.Pool, freshHosts(wanted), of)
}

func freshHosts(n int) string {
	if n == 0 {
		return "no fresh host"
	}
	return plural.Of(n, "fresh host", "fresh hosts")
}
