package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/jobname"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/policy/unserved"
)

const (
	// refusalsBack and refusalsRead bound the read of the fleet's history for a refused job whose run is not known.
	refusalsBack = 24 * time.Hour
	refusalsRead = 10_000
)

// refusal explains a job that was refused a host, by the history: such a job has no row. Without a run the newest events of the whole fleet are read.
func (ex *Explainer) refusal(ctx context.Context, id int64, of OfRun, now time.Time) (e Explanation, found bool, err error) {
	var events []lifecycle.Event
	if of.RunID != "" {
		events, err = ex.newestEvents(ctx, of.Repository, of.RunID)
	} else {
		var all lifecycle.HostHistory
		all, err = ex.History(ctx, "", now.Add(-refusalsBack), time.Time{}, refusalsRead)
		events = all.Events
	}
	if err != nil {
		return e, false, err
	}
	for _, event := range events {
		if event.Action == lifecycle.ActionRefuseJob && event.JobID == id {
			e.Events = append(e.Events, event)
		}
	}
	if len(e.Events) == 0 {
		return e, false, nil
	}
	last := e.Events[len(e.Events)-1]
	e.Sentences = append(refusedSentences([]lifecycle.Event{last}), fmt.Sprintf("It is of run %s of %s, was queued at %s and refused at %s.",
		last.RunID, last.Repository, hosts.ClockTime(last.Since), hosts.ClockTime(last.At)))
	return e, true, nil
}

// refusedNow are the last refusals of jobs that have had no host since, as far as the history and the open jobs of the run tell.
func refusedNow(events []lifecycle.Event, open []lifecycle.Job) []lifecycle.Event {
	var refused []lifecycle.Event
	for _, e := range events {
		if e.JobID == 0 {
			continue
		}
		refused = slices.DeleteFunc(refused, func(r lifecycle.Event) bool { return r.JobID == e.JobID })
		if e.Action == lifecycle.ActionRefuseJob {
			refused = append(refused, e)
		}
	}
	return slices.DeleteFunc(refused, func(r lifecycle.Event) bool {
		return slices.ContainsFunc(open, func(j lifecycle.Job) bool { return j.ID == r.JobID })
	})
}

// refusedSentences say which jobs get no host, why, and what happens next: one sentence for all jobs of the same reason.
func refusedSentences(refused []lifecycle.Event) (sentences []string) {
	var reasons []string
	jobs := map[string][]lifecycle.Event{}
	for _, e := range refused {
		why := sentence(reasonOf(e)) + " " + unserved.Next(e.Code, e.Pool)
		if jobs[why] == nil {
			reasons = append(reasons, why)
		}
		jobs[why] = append(jobs[why], e)
	}
	for _, why := range reasons {
		who := "Job " + refusedName(jobs[why][0])
		if others := len(jobs[why]) - 1; others > 0 {
			sentences = append(sentences, fmt.Sprintf("%s and %s get no host: %s", who, plural.Of(others, "other job", "other jobs"), why))
			continue
		}
		sentences = append(sentences, who+" gets no host: "+why)
	}
	return sentences
}

// reasonOf is the reason of a refusal without its job.
func reasonOf(e lifecycle.Event) string {
	return strings.TrimPrefix(e.Reason, fmt.Sprintf("job %d gets no host: ", e.JobID))
}

func refusedName(e lifecycle.Event) string {
	return jobname.Of(lifecycle.Job{ID: e.JobID, Name: e.JobName})
}

// sentence ends a text as a sentence ends.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
