package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/hashicorp/go-hclog"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

const (
	// notesOfRun is how many refused jobs of an attempt of a run a replica writes to the history, so that each can be explained by its id: as many as a
	// matrix of GitHub may have.
	notesOfRun = 256
	// notesAtOnce and notesPerMinute are how many refused jobs of one repository a replica writes to the history at once, and in each minute in the long
	// run: anyone may open pull requests from forks, and 60 a minute are some 86,000 events a day. The log has all of them.
	notesAtOnce    = 2 * notesOfRun
	notesPerMinute = 60
	// notesAtMost and notedJobsAtMost bound the sizes of the maps in refusals. At the bound a map is emptied.
	notesAtMost     = 4096
	notedJobsAtMost = 1 << 16
)

// refusals counts the refused jobs that were written to the history. It is guarded by Jobs.mu.
type refusals struct {
	ofRun        map[string]int // by lifecycle.RunKey and attempt
	ofRepository map[string]*rate.Limiter
	// noted has the jobs that were written, since a webhook may come more than once, and the sweep of missed ones finds a waiting job each time.
	noted map[notedJob]bool
	// logged has the repositories and reasons that the log has had a line at info about.
	logged map[string]bool
}

type notedJob struct {
	id   int64
	code lifecycle.ReasonCode
}

// admit reports whether a refused job is written to the history, and counts it.
func (r *refusals) admit(j lifecycle.Job, code lifecycle.ReasonCode, now time.Time) bool {
	run := fmt.Sprint(lifecycle.RunKey(j.Repository, j.RunID), " ", j.RunAttempt)
	job := notedJob{j.ID, code}
	if r.noted[job] || r.ofRun[run] >= notesOfRun {
		return false
	}
	limiter := r.ofRepository[j.Repository]
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Every(time.Minute/notesPerMinute), notesAtOnce)
		r.ofRepository = room(r.ofRepository, notesAtMost)
		r.ofRepository[j.Repository] = limiter
	}
	if !limiter.AllowN(now, 1) {
		return false
	}
	r.noted, r.ofRun = room(r.noted, notedJobsAtMost), room(r.ofRun, notesAtMost)
	r.noted[job] = true
	r.ofRun[run]++
	return true
}

// room is the map, or an empty one if it has as many entries as it may have.
func room[K comparable, V any](m map[K]V, atMost int) map[K]V {
	if m == nil || len(m) >= atMost {
		return map[K]V{}
	}
	return m
}

// first reports whether no job of a repository has been refused for a reason yet, as far as is remembered.
func (r *refusals) first(repository string, code lifecycle.ReasonCode) bool {
	key := repository + " " + string(code)
	if r.logged[key] {
		return false
	}
	r.logged = room(r.logged, notesAtMost)
	r.logged[key] = true
	return true
}

// logRefusal logs why a job gets no host: at info the first time for a repository and a reason, and at debug after that, since each job
// of a workflow that is wrong is refused.
func (js *Jobs) logRefusal(j lifecycle.WorkflowJob, why lifecycle.Reason) {
	js.mu.Lock()
	first := js.refusals.first(j.Repository, why.Code)
	js.mu.Unlock()
	level := hclog.Debug
	if first {
		level = hclog.Info
	}
	js.Log.Log(level, "job gets no host", logkey.Job, j.ID, logkey.Run, j.RunID, logkey.Repository, j.Repository, logkey.Code, why.Code, logkey.Reason, why.Text)
}

func (js *Jobs) countUnserved(code lifecycle.ReasonCode) {
	if js.OnUnserved != nil {
		js.OnUnserved(code)
	}
}

// noteRefusal records that a job gets no host, for ExplainRun. A job that is refused has no row. The pool is the one that it names, or means.
func (js *Jobs) noteRefusal(events *op.Recorder, j lifecycle.Job, why lifecycle.Reason, now time.Time) {
	js.mu.Lock()
	admitted := js.refusals.admit(j, why.Code, now)
	js.mu.Unlock()
	if admitted {
		events.Record(lifecycle.Event{
			At: now, Repository: j.Repository, RunID: j.RunID, Pool: j.Pool, Action: lifecycle.ActionRefuseJob, Code: why.Code, Reason: why.Text,
			JobID: j.ID, JobName: j.Name, Since: j.QueuedAt,
		})
	}
}

// refuse finishes the webhook of a job that gets no host.
func (h *webhookOp) refuse(row lifecycle.Job, why lifecycle.Reason, now time.Time) (op.Progress, error) {
	noted := lifecycle.Because(why.Code, "job %d gets no host: %s", row.ID, why.Text)
	h.env.countUnserved(why.Code)
	h.env.noteRefusal(&h.Events, row, noted, now)
	h.w.Refused = true
	return h.finish(fmt.Sprintf("refused: %s (%s)", why.Text, why.Code))
}

// refused returns the reason why a job may not use its pool, or none. The error is lifecycle.ErrNotFound while
// GitHub does not know the job's run.
func (h *webhookOp) refused(ctx context.Context, row lifecycle.Job, now time.Time) (lifecycle.Reason, error) {
	var none lifecycle.Reason
	pool, ok := h.env.Options.Pools[row.Pool]
	switch {
	case row.Pool == "" || !ok:
		return none, nil
	case !policy.ServesRepository(pool.Repositories, row.Repository):
		return lifecycle.Because(lifecycle.ReasonNotServed, "%s may not use job pool %s; it may be used by %v", row.Repository, row.Pool, pool.Repositories), nil
	case pool.Forks, row.State != lifecycle.JobWaiting:
		return none, nil
	}
	if err := h.knownOrDue(row, now); err != nil {
		return none, err
	}
	fork, err := h.env.ofFork(ctx, row.Repository, row.RunID)
	if errors.Is(err, lifecycle.ErrUnavailable) {
		h.env.note(row.ID, lifecycle.Because(lifecycle.ReasonGitHubUnavailable, "GitHub does not answer whether run %s is of a fork", row.RunID))
	}
	if err == nil && fork {
		return lifecycle.Because(lifecycle.ReasonFork, "run %s is of a fork, and job pool %s takes none", row.RunID, row.Pool), nil
	}
	return none, err
}
