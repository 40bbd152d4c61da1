package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/jobname"
	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/waiting"
)

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

// ExplainJob describes one job that a webhook announced, also one that was refused a host, and what its run's history has of it. With a
// run it describes only a job of that run. Any other is ErrNotFound, like an unknown one. A caller who may ask about any may name the run of
// the job: *hosts.InvalidError if it is of another.
func (ex *Explainer) ExplainJob(ctx context.Context, id int64, of, named OfRun, now time.Time) (Explanation, error) {
	var e Explanation
	if ex.JobStore == nil {
		return e, lifecycle.NotFound("the configuration has no webhooks, so no job is known")
	}
	j, err := ex.JobStore.Job(ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		run := of
		if run.RunID == "" {
			run = named
		}
		if refused, found, err := ex.refusal(ctx, id, run, now); found || err != nil {
			return refused, err
		}
	}
	switch {
	case errors.Is(err, lifecycle.ErrNotFound), err == nil && of.RunID != "" && (j.RunID != of.RunID || j.Repository != of.Repository):
		return e, lifecycle.NotFound("no webhook announced this job in the last 7 days, or this fleet does not serve it; explain its run instead")
	case err != nil:
		return e, fmt.Errorf("read job %d: %w", id, err)
	case named.RunID != "" && (j.RunID != named.RunID || j.Repository != named.Repository):
		return e, &hosts.InvalidError{Field: "job_id", Rule: fmt.Sprintf("job %d is of run %s of %s, and not of run %s of %s", id, j.RunID, j.Repository, named.RunID, named.Repository)}
	}
	events, err := ex.newestEvents(ctx, j.Repository, j.RunID)
	if err != nil {
		return e, err
	}
	for _, event := range events {
		if strings.HasPrefix(event.Reason, fmt.Sprintf("job %d ", id)) {
			e.Events = append(e.Events, event)
		}
	}
	hold, err := ex.Hosts.FleetHold(ctx)
	if err != nil {
		return e, err
	}
	requests, err := ex.Store.RequestsOfRun(ctx, j.Repository, j.RunID)
	if err != nil {
		return e, fmt.Errorf("list requests of run %s: %w", j.RunID, err)
	}
	e.Sentences = []string{fmt.Sprintf("Job %s is of run %s of %s, attempt %d, with the labels %s%s.",
		jobname.Of(j), j.RunID, j.Repository, j.RunAttempt, strings.Join(j.Labels, ", "), ex.runningJob(j).at())}
	about, err := ex.jobSentences(ctx, j, requests, hold, now)
	if err != nil {
		return e, err
	}
	e.Sentences = append(e.Sentences, about...)
	if about, err = ex.awaited(ctx, j, requests, now); err != nil {
		return e, err
	}
	e.Sentences = append(e.Sentences, about...)
	for _, event := range e.Events {
		e.Sentences = append(e.Sentences, eventSentence(event))
	}
	return e, nil
}

// awaited are the open requests whose hosts a job of their run waits for, each with why it waits itself.
func (ex *Explainer) awaited(ctx context.Context, j lifecycle.Job, requests []lifecycle.Request, now time.Time) (sentences []string, err error) {
	if j.State == lifecycle.JobDone || j.State == lifecycle.JobRunning || j.Pool != "" {
		return nil, nil
	}
	for _, q := range requests {
		if q.Settled() || q.Released() {
			continue
		}
		why, err := ex.whyRequest(ctx, q, now)
		if err != nil {
			return nil, err
		}
		sentences = append(sentences, requestSentence(q, why, now))
	}
	return sentences, nil
}

// jobSentences are about a job: what runs it, or why it waits and what happens next.
func (ex *Explainer) jobSentences(ctx context.Context, j lifecycle.Job, requests []lifecycle.Request, hold fleethold.Hold, now time.Time) ([]string, error) {
	switch {
	case j.State == lifecycle.JobDone:
		return []string{fmt.Sprintf("Job %s is over since %s: %s.", jobname.Of(j), hosts.ClockTime(j.EndedAt), jobname.Outcome(j))}, nil
	case j.State == lifecycle.JobRunning:
		return ex.running(ctx, j, hold, now)
	case j.Pool != "":
		return ex.waitsForPool(ctx, j, hold, now)
	}
	sentences := []string{fmt.Sprintf("Job %s waits for the hosts of its run since %s.", jobname.Of(j), hosts.ClockTime(j.QueuedAt))}
	if label := ex.lackedLabel(j, requests); label != "" {
		sentences = append(sentences, fmt.Sprintf(
			"Job %s names the label %s, which these hosts do not have: remove it from runs-on, or set default_labels: true for their pool.", jobname.Of(j), label))
	}
	return sentences, nil
}

// running says where a job runs. A host of a job pool belongs to no run, so what is known of it is said here.
func (ex *Explainer) running(ctx context.Context, j lifecycle.Job, hold fleethold.Hold, now time.Time) ([]string, error) {
	sentences := []string{fmt.Sprintf("Job %s runs on %s since %s.", jobname.Of(j), j.RunnerName, hosts.ClockTime(j.StartedAt))}
	id := runnername.InstanceOf(j.RunnerName)
	if j.Pool == "" || id == "" {
		return sentences, nil
	}
	r, err := ex.Hosts.Find(ctx, id)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return sentences, nil
	case err != nil:
		return nil, fmt.Errorf("read the host of job %d: %w", j.ID, err)
	case r.RunnerName != j.RunnerName: // it serves another job by now, or the runner is of another fleet
		return sentences, nil
	}
	about, err := ex.ofHosts(ctx, []lifecycle.Record{r}, nil, hold, now)
	return append(sentences, about...), err
}

// WhyWaits answers why a waiting job of a job pool has no host yet.
func (ex *Explainer) WhyWaits(ctx context.Context, j lifecycle.Job, now time.Time) (waiting.Answer, error) {
	f, err := ex.waitingFacts(ctx, j, now)
	if err != nil {
		return waiting.Answer{}, err
	}
	return waiting.Why(f, now), nil
}

// waitsForPool says why a job of a job pool has no host yet, and what happens next.
func (ex *Explainer) waitsForPool(ctx context.Context, j lifecycle.Job, hold fleethold.Hold, now time.Time) ([]string, error) {
	f, err := ex.waitingFacts(ctx, j, now)
	if err != nil {
		return nil, err
	}
	line := f.Line()
	if line != "" {
		line = ", " + line
	}
	why := waiting.Why(f, now)
	sentences := []string{
		fmt.Sprintf("Job %s waits for job pool %s since %s (%s)%s.", jobname.Of(j), j.Pool, hosts.ClockTime(j.QueuedAt), now.Sub(j.QueuedAt).Round(time.Second), line),
		fmt.Sprintf("Why: %s (%s)%s. %s", why.Text, why.Code, sinceOf(why, now), why.Next),
	}
	if q := f.Request; q != nil {
		serving, leaving, err := ex.Hosts.OfRequest(ctx, *q, nil)
		if err != nil {
			return nil, err
		}
		about, err := ex.ofHosts(ctx, append(serving, leaving...), nil, hold, now)
		if err != nil {
			return nil, err
		}
		sentences = append(sentences, about...)
	}
	return sentences, nil
}

// sinceOf is since when a reason holds, within a sentence; empty: it is not known, or the reason itself says so.
func sinceOf(why waiting.Answer, now time.Time) string {
	switch {
	case why.Since.IsZero() || why.Code == lifecycle.ReasonPoolPaused:
		return ""
	case now.Sub(why.Since) >= 24*time.Hour: // as a budget
		return ", since " + why.Since.UTC().Format(time.RFC3339)
	}
	return ", since " + hosts.ClockTime(why.Since)
}

// waitingFacts reads what waiting.Why decides from about one job.
func (ex *Explainer) waitingFacts(ctx context.Context, j lifecycle.Job, now time.Time) (waiting.Facts, error) {
	line, err := ex.lineOf(ctx, j.Pool, waitingRead, now)
	if err != nil {
		return waiting.Facts{}, err
	}
	return line.facts(ctx, j, now)
}

// lackedLabel is a default label of GitHub's runner that a waiting job names and no host of its run has, or "". Where
// nothing was requested for the run, any pool may be the one that it gets hosts of.
func (ex *Explainer) lackedLabel(j lifecycle.Job, requests []lifecycle.Request) string {
	i := slices.IndexFunc(j.Labels, policy.IsDefaultLabel)
	if i < 0 {
		return ""
	}
	for name, p := range ex.Pools {
		mayServe := len(requests) == 0 || slices.ContainsFunc(requests, func(q lifecycle.Request) bool { return q.Spec.Pool == name })
		if p.DefaultLabels && mayServe {
			return ""
		}
	}
	return j.Labels[i]
}
