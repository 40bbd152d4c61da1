package explain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Explanation is why a run has, or has not yet, what it asked for.
type Explanation struct {
	Sentences []string
	Events    []lifecycle.Event
}

// explainEvents bounds the history in one explanation.
const explainEvents = 1000

// Explain describes a run's requests, its hosts and what each of them waits for, and its
// history. It returns ErrNotFound for a run without requests whose jobs are over.
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
	if len(requests)+len(jobs) == 0 {
		return e, fmt.Errorf("run %s of %s: it has no request for hosts and no job that waits or runs: %w", runID, repository, lifecycle.ErrNotFound)
	}
	if e.Events, err = ex.newestEvents(ctx, repository, runID); err != nil {
		return e, err
	}
	hold, err := ex.Hosts.FleetHold(ctx)
	if err != nil {
		return e, err
	}
	e.Sentences = append(e.Sentences, compact(holdSentence(hold, now))...)
	for _, q := range requests {
		e.Sentences = append(e.Sentences, requestSentence(q, now))
		serving, leaving, err := ex.Hosts.OfRequest(ctx, q, nil)
		if err != nil {
			return e, err
		}
		facts, err := ex.Hosts.LoadFacts(ctx, append(serving, leaving...), now)
		if err != nil {
			return e, err
		}
		for _, fact := range facts {
			fact.FleetHold = &hold
			e.Sentences = append(e.Sentences, ex.hostSentences(fact, e.Events, now)...)
		}
	}
	for _, j := range jobs {
		e.Sentences = append(e.Sentences, jobSentence(j))
	}
	for _, event := range e.Events {
		e.Sentences = append(e.Sentences, eventSentence(event))
	}
	return e, nil
}

// newestEvents are the last explainEvents of a run's history, oldest first.
func (ex *Explainer) newestEvents(ctx context.Context, repository, runID string) ([]lifecycle.Event, error) {
	var newest []lifecycle.Event
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
		return ex.Store.EventsOfRun(ctx, repository, runID, page)
	}
	for e, err := range lifecycle.Pages(lifecycle.PageOf{Limit: explainEvents}, list) {
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

// openJobsOf are the jobs of a run that are not over, the longest queued first; none where
// there are no webhooks.
func (ex *Explainer) openJobsOf(ctx context.Context, repository, runID string) ([]lifecycle.Job, error) {
	if ex.JobStore == nil {
		return nil, nil
	}
	jobs, err := ex.JobStore.OpenJobsOfRun(ctx, repository, runID)
	if err != nil {
		return nil, fmt.Errorf("list jobs of run %s: %w", runID, err)
	}
	slices.SortFunc(jobs, func(a, b lifecycle.Job) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	return jobs, nil
}

func jobSentence(j lifecycle.Job) string {
	served := "the hosts of its run"
	if j.Pool != "" {
		served = "job pool " + j.Pool
	}
	if j.State == lifecycle.JobRunning {
		return fmt.Sprintf("Job %d runs on %s since %s.", j.ID, j.RunnerName, hosts.ClockTime(j.StartedAt))
	}
	return fmt.Sprintf("Job %d waits for %s since %s.", j.ID, served, hosts.ClockTime(j.QueuedAt))
}

func requestSentence(q lifecycle.Request, now time.Time) string {
	if of := q.ReplacementOf; of != nil {
		return fmt.Sprintf("Request %s replaces host %s, which EC2 reclaimed. %s",
			q.RequestID, of.InstanceID, askedSentence(q, now))
	}
	return askedSentence(q, now)
}

func askedSentence(q lifecycle.Request, now time.Time) string {
	s := q.Spec
	asked := fmt.Sprintf("Request %s asked for %d %s %s hosts (at least %d) of pool %s at %s",
		q.RequestID, s.Count, s.ResourceClass, s.UsageClass, s.MinimumCount, s.Pool, hosts.ClockTime(q.CreatedAt))
	switch q.Outcome {
	case lifecycle.OutcomeReady:
		return fmt.Sprintf("%s and got %d.%s", asked, len(q.Taken), releasedPart(q))
	case lifecycle.OutcomeShort:
		if len(q.Taken) == 0 {
			return fmt.Sprintf("%s and got none: %s.", asked, q.Reason)
		}
		return fmt.Sprintf("%s and was rolled back: %s.", asked, q.Reason)
	case lifecycle.OutcomeReleased:
		return fmt.Sprintf("%s and was released at %s before it was ready.", asked, hosts.ClockTime(q.ReleasedAt))
	}
	open := fmt.Sprintf("%s; it has taken %d and waits until %s (%s left)",
		asked, len(q.Taken), hosts.ClockTime(q.Deadline), max(0, q.Deadline.Sub(now)).Round(time.Second))
	if q.Shortage != "" {
		open += "; the last launch was short: " + q.Shortage
	}
	if q.QuotaReason != "" && q.Missing() > 0 {
		open += "; " + q.QuotaReason
	}
	return open + "."
}

func releasedPart(q lifecycle.Request) string {
	if !q.Released() {
		return ""
	}
	return fmt.Sprintf(" The run was released at %s.", hosts.ClockTime(q.ReleasedAt))
}

// hostSentences are about one host of a run: how it stands, what is noted on it, and what sweeps say of it.
func (ex *Explainer) hostSentences(facts lifecycle.Facts, history []lifecycle.Event, now time.Time) []string {
	r := facts.Record
	d := ex.Hosts.Decide(facts, now)
	at, _ := since(r, history)
	s := fmt.Sprintf("Host %s (%s) is %s since %s", r.InstanceID, r.InstanceType, r.Condition(), hosts.ClockTime(at))
	t := hostExplainer{env: ex, now: now, Facts: facts}
	if d.Action == lifecycle.ActionKeep {
		s += ": " + d.Reason + "."
	} else {
		s += fmt.Sprintf("; next: %s%s, since: %s.", d.Action, t.by(), d.Reason)
	}
	sentences := append([]string{s}, t.marks()...)
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
	if e.InstanceID == "" {
		return fmt.Sprintf("%s %s: %s.", hosts.ClockTime(e.At), what, e.Reason)
	}
	return fmt.Sprintf("%s %s %s: %s.", hosts.ClockTime(e.At), e.InstanceID, what, e.Reason)
}
