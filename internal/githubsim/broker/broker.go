// Package broker is the side of the stand-in that its runners talk to, as GitHub's broker and run service are: sessions, messages,
// and the jobs that a runner takes, reports on and ends.
package broker

import (
	"net/http"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// State is what the stand-in keeps. Every method except Change, Look, AppendLog and Stopped is called within Change or Look.
type State interface {
	// Change runs f with the state locked and writes what f changed.
	Change(f func() error) error
	// Look runs f with the state locked.
	Look(f func())
	Now() time.Time
	// RunnerOf returns the runner of a credential, by the credential's hash; nil if there is none.
	RunnerOf(credential string) *state.Runner
	// Removed reports whether the credential is that of a registration that was deleted.
	Removed(credential string) bool
	// Versions are the versions of the runner that GitHub takes.
	Versions() state.Versions
	Job(id int64) *state.Job
	SaveRunner(*state.Runner)
	SaveJob(*state.Job)

	// Begin marks an assigned job as running.
	Begin(*state.Job)
	// Complete ends a job. reason, if any, goes into its log.
	Complete(j *state.Job, conclusion, reason string)
	// Unassign takes a job from its runner and puts it first in the queue.
	Unassign(*state.Job)
	// Describe is what a worker needs for a job. token is the worker's Authorization.
	Describe(j *state.Job, token string) protocol.Job

	AppendLog(job, offset int64, data []byte) error
	// Stopped is closed when the stand-in ends.
	Stopped() <-chan struct{}
}

// Broker answers the runners of a stand-in.
type Broker struct {
	state State
	times state.Times
}

// New returns a broker on the state. Times without a value are not filled in.
func New(s State, times state.Times) *Broker { return &Broker{s, times} }

// sessionGrace is how long a session lasts at least after a poll that was answered. A listener polls again at once.
const sessionGrace = 10 * time.Second

// LostMessage is GitHub's annotation on a job whose runner is gone.
const LostMessage = "The self-hosted runner lost communication with the server. Verify the machine is running and has a healthy network connection."

// Two ways in which a listener learns that its registration is no more: the message queue knows that it was deleted (RunnerNotFound,
// actions/runner 2.336, src/Sdk/WebApi/WebApi/BrokerHttpClient.cs:115-121), everything else does not know its credential any more.
var (
	errGone    = rest.Problem(http.StatusUnauthorized, "The runner registration has been deleted from the server.")
	errRemoved = rest.Problem(http.StatusNotFound, "Runner not found")
)

// caller is the runner whose credential the call bears.
func (b *Broker) caller(r *http.Request) (*state.Runner, error) {
	hash := state.HashOf(rest.Bearer(r))
	if rn := b.state.RunnerOf(hash); rn != nil {
		return rn, nil
	}
	if r.Method == http.MethodGet && b.state.Removed(hash) {
		return nil, errRemoved
	}
	return nil, errGone
}

// Present reports whether a listener speaks for the runner as far as GitHub knows: it polls, or did until a moment ago.
func (b *Broker) Present(rn *state.Runner) bool {
	grace := b.times.Session
	if !rn.Abandoned {
		grace = max(grace, sessionGrace)
	}
	return rn.Session != "" && (rn.Polls > 0 || b.state.Now().Sub(rn.LastSeen) < grace)
}

// OpenSession lets one listener speak for a runner. A second one is refused while the first is there. A job that the first one had
// acquired stays the runner's until its lock runs out: no listener says that it is gone.
func (b *Broker) OpenSession(r *http.Request) (a *rest.Answer, err error) {
	err = b.state.Change(func() error {
		rn, err := b.caller(r)
		if err != nil {
			return err
		}
		if b.Present(rn) {
			return rest.Problem(http.StatusConflict, "A session for this runner already exists.")
		}
		secret, hash := state.NewSecret()
		rn.Session, rn.Abandoned, rn.Heard, rn.LastSeen, rn.IdleSince = hash, false, true, b.state.Now(), b.state.Now()
		clear(rn.Sent)
		b.state.SaveRunner(rn)
		a = rest.Created(protocol.Session{ID: secret})
		return nil
	})
	return a, err
}

// CloseSession ends a session at the listener's request. A job that it has not acquired goes back to the queue.
func (b *Broker) CloseSession(r *http.Request) (*rest.Answer, error) {
	return nil, b.state.Change(func() error {
		rn, err := b.sessionOf(r)
		if err != nil {
			return err
		}
		rn.Session = ""
		b.state.SaveRunner(rn)
		rn.Notify()
		if j := b.state.Job(rn.JobID); j != nil && j.Status == state.StatusQueued {
			b.state.Unassign(j)
		}
		return nil
	})
}

func (b *Broker) sessionOf(r *http.Request) (*state.Runner, error) {
	rn, err := b.caller(r)
	if err != nil {
		return nil, err
	}
	if rn.Session != state.HashOf(r.URL.Query().Get("session")) {
		return nil, rest.Problem(http.StatusConflict, "A session for this runner already exists.")
	}
	return rn, nil
}

// Poll holds a listener's call until there is a message for it.
func (b *Broker) Poll(r *http.Request) (*rest.Answer, error) {
	var rn *state.Runner
	err := b.state.Change(func() (err error) {
		if rn, err = b.sessionOf(r); err == nil {
			err = b.accepted(r)
		}
		if err == nil {
			rn.Polls++
			rn.Heard = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	a, err := b.awaitMessage(r, rn)
	b.state.Look(func() {
		rn.Polls--
		rn.LastSeen = b.state.Now()
		rn.Abandoned = r.Context().Err() != nil
	})
	return a, err
}

func (b *Broker) awaitMessage(r *http.Request, rn *state.Runner) (*rest.Answer, error) {
	expired := time.NewTimer(protocol.PollTime)
	defer expired.Stop()
	for {
		var m *protocol.Message
		var changed <-chan struct{}
		var err error
		b.state.Look(func() {
			_, err = b.sessionOf(r)
			if m, changed = b.refresh(r, rn), rn.Changed; m == nil {
				m = b.nextMessage(rn)
			}
		})
		if err != nil {
			return nil, err
		}
		if m != nil {
			return rest.OK(m), nil
		}
		select {
		case <-changed:
		case <-expired.C:
			return nil, nil
		case <-r.Context().Done():
			return nil, nil
		case <-b.state.Stopped():
			return nil, rest.Problem(http.StatusServiceUnavailable, "the GitHub stand-in is stopping")
		}
	}
}

// nextMessage is what a runner's listener has not yet been told.
func (b *Broker) nextMessage(r *state.Runner) *protocol.Message {
	j := b.state.Job(r.JobID)
	if j == nil {
		return nil
	}
	m := protocol.Message{Kind: protocol.MessageJob, JobID: j.ID}
	if j.Status == state.StatusInProgress {
		if j.CancelledAt.IsZero() {
			return nil
		}
		m.Kind = protocol.MessageCancel
	}
	if r.Sent[state.SentMessage{Kind: m.Kind, JobID: m.JobID}] {
		return nil
	}
	r.Sent[state.SentMessage{Kind: m.Kind, JobID: m.JobID}] = true
	return &m
}
