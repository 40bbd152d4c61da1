package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

const (
	// notesOfRun is how many refused jobs of one run a replica writes to the history. They are refused for the
	// same reason, so the first ones say enough.
	notesOfRun = 10
	// notesPerMinute is how many refused jobs of one repository a replica writes to the history in a minute, since
	// anyone may open pull requests from forks. The log has all of them.
	notesPerMinute = 60
	// notesAtMost bounds the sizes of the maps in refusals. At the bound a map is emptied.
	notesAtMost = 4096
)

// refusals counts the refused jobs that were written to the history. It is guarded by Jobs.mu.
type refusals struct {
	ofRun        map[string]int // by lifecycle.RunKey
	ofRepository map[string]int // in the minute
	minute       time.Time
	// logged has the repositories and reasons that the log has had a line at info about.
	logged map[string]bool
}

// admit reports whether one more refused job of a run is written to the history, and counts it.
func (r *refusals) admit(repository, runID string, now time.Time) bool {
	if minute := now.Truncate(time.Minute); r.ofRepository == nil || !minute.Equal(r.minute) || len(r.ofRepository) >= notesAtMost {
		r.minute, r.ofRepository = minute, map[string]int{}
	}
	if r.ofRun == nil || len(r.ofRun) >= notesAtMost {
		r.ofRun = map[string]int{}
	}
	key := lifecycle.RunKey(repository, runID)
	if r.ofRun[key] >= notesOfRun || r.ofRepository[repository] >= notesPerMinute {
		return false
	}
	r.ofRun[key]++
	r.ofRepository[repository]++
	return true
}

// first reports whether no job of a repository has been refused for a reason yet, as far as is remembered.
func (r *refusals) first(repository string, code lifecycle.ReasonCode) bool {
	key := repository + " " + string(code)
	if r.logged[key] {
		return false
	}
	if r.logged == nil || len(r.logged) >= notesAtMost {
		r.logged = map[string]bool{}
	}
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

// noteRefusal records that a job gets no host, for ExplainRun. A job that is refused has no row.
func (js *Jobs) noteRefusal(events *op.Recorder, repository, runID, pool string, why lifecycle.Reason, now time.Time) {
	js.mu.Lock()
	admitted := js.refusals.admit(repository, runID, now)
	js.mu.Unlock()
	if admitted {
		events.Record(lifecycle.Event{
			At: now, Repository: repository, RunID: runID, Pool: pool, Action: lifecycle.ActionRefuseJob, Code: why.Code, Reason: why.Text,
		})
	}
}

// refuse finishes the webhook of a job that gets no host.
func (h *webhookOp) refuse(row lifecycle.Job, why lifecycle.Reason, now time.Time) (op.Progress, error) {
	noted := lifecycle.Because(why.Code, "job %d gets no host: %s", row.ID, why.Text)
	h.env.countUnserved(why.Code)
	h.env.noteRefusal(&h.Events, row.Repository, row.RunID, row.Pool, noted, now)
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
