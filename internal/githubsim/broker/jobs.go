package broker

import (
	"io"
	"net/http"
	"strconv"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// Acknowledge takes a listener's word that it has the message of a job. 404 says that the job is no longer assigned to it.
func (b *Broker) Acknowledge(r *http.Request) (*rest.Answer, error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	return nil, b.state.Change(func() error {
		rn, err := b.caller(r)
		if err == nil && rn.JobID != id {
			err = rest.ErrNotFound
		}
		return err
	})
}

// Acquire begins an assigned job. A repeated call by the same runner gets the job again: the first answer may have been lost.
func (b *Broker) Acquire(r *http.Request) (a *rest.Answer, err error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	err = b.state.Change(func() error {
		rn, err := b.caller(r)
		if err != nil {
			return err
		}
		j := b.state.Job(id)
		if j == nil || rn.JobID != id {
			return rest.Problem(http.StatusConflict, "The job is not assigned to this runner any more.")
		}
		secret, hash := state.NewSecret()
		j.Token, j.LockedUntil = hash, b.state.Now().Add(b.times.Lock)
		b.state.SaveJob(j)
		if j.Status == state.StatusQueued {
			b.state.Begin(j)
		}
		a = rest.OK(b.state.Describe(j, secret))
		return nil
	})
	return a, err
}

// Renew keeps a running job with its runner (actions/runner 2.336, src/Runner.Listener/JobDispatcher.cs 748-790).
func (b *Broker) Renew(r *http.Request) (*rest.Answer, error) {
	return nil, b.ofWorker(r, func(j *state.Job) error {
		j.LockedUntil = b.state.Now().Add(b.times.Lock)
		b.state.SaveJob(j)
		return nil
	})
}

// ofWorker runs f on the job of the path if the call bears the token of its worker.
func (b *Broker) ofWorker(r *http.Request, f func(*state.Job) error) error {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return err
	}
	return b.state.Change(func() error {
		j := b.state.Job(id)
		if j == nil || j.Token == "" || j.Token != state.HashOf(rest.Bearer(r)) {
			return rest.Problem(http.StatusConflict, "The job is not running any more.")
		}
		return f(j)
	})
}

// AppendLog takes a piece of a job's log.
func (b *Broker) AppendLog(r *http.Request) (*rest.Answer, error) {
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "offset is not a number")
	}
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, rest.MaxBody))
	if err != nil {
		return nil, rest.Problem(http.StatusBadRequest, "read log: %v", err)
	}
	var id int64
	if err := b.ofWorker(r, func(j *state.Job) error { id = j.ID; return nil }); err != nil {
		return nil, err
	}
	return nil, b.state.AppendLog(id, offset, data)
}

// SetSteps takes the progress of a job's steps.
func (b *Broker) SetSteps(r *http.Request) (*rest.Answer, error) {
	var steps []protocol.StepState
	if err := rest.Decode(r, &steps, true); err != nil {
		return nil, err
	}
	return nil, b.ofWorker(r, func(j *state.Job) error {
		j.Progress = steps
		b.state.SaveJob(j)
		return nil
	})
}

// Complete takes the conclusion of a job.
func (b *Broker) Complete(r *http.Request) (*rest.Answer, error) {
	var q protocol.Complete
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	switch q.Conclusion {
	case state.ConclusionSuccess, state.ConclusionFailure, state.ConclusionCancelled:
	default:
		return nil, rest.Problem(http.StatusUnprocessableEntity, "conclusion %q is none of success, failure and cancelled", q.Conclusion)
	}
	return nil, b.ofWorker(r, func(j *state.Job) error {
		b.state.Complete(j, q.Conclusion, q.Reason)
		return nil
	})
}
