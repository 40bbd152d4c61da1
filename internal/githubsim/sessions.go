package githubsim

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// sessionGrace is how long a session without a poll still keeps others out. A listener polls again at once, so more would only
// delay a new one.
const sessionGrace = 10 * time.Second

// errGone tells a listener that its registration is no more.
var errGone = rest.Problem(http.StatusUnauthorized, "The runner registration has been deleted from the server.")

// scopeOfURL is the repository or organization that a runner was configured for.
func scopeOfURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", rest.Problem(http.StatusUnprocessableEntity, "url is not a URL")
	}
	scope := strings.Trim(u.Path, "/")
	if scope == "" || strings.Count(scope, "/") > 1 {
		return "", rest.Problem(http.StatusUnprocessableEntity, "'%s' should point to an org or repository.", raw)
	}
	return scope, nil
}

func (s *Server) register(r *http.Request) (a *rest.Answer, err error) {
	var q protocol.Register
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	scope, err := scopeOfURL(q.URL)
	if err != nil {
		return nil, err
	}
	err = s.change(func() error {
		if err := s.checkToken(rest.Bearer(r), purposeRegister, scope); err != nil && !q.Hosted { // GitHub's own machines are not registered with a token
			return err
		}
		rn, secret, err := s.addRunner(registration{
			scope: scope, name: q.Name, labels: q.Labels, ephemeral: q.Ephemeral, replace: q.Replace, hosted: q.Hosted,
		})
		if err == nil {
			a = rest.Created(protocol.Registered{ID: rn.ID, Credential: secret})
		}
		return err
	})
	return a, err
}

func (s *Server) remove(r *http.Request) (*rest.Answer, error) {
	var q protocol.Remove
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	scope, err := scopeOfURL(q.URL)
	if err != nil {
		return nil, err
	}
	return nil, s.change(func() error {
		rn := s.runners[q.ID]
		if rn == nil || !strings.EqualFold(rn.Scope, scope) {
			return rest.ErrNotFound
		}
		if err := s.checkToken(rest.Bearer(r), purposeRemove, scope); err != nil && !rn.Hosted {
			return rest.Problem(http.StatusForbidden, "the remove token is wrong or expired")
		}
		if rn.JobID != 0 {
			return stillBusy(rn)
		}
		s.removeRunner(rn)
		return nil
	})
}

// caller is the runner whose credential the call bears.
func (s *Server) caller(r *http.Request) (*state.Runner, error) {
	hash := hashOf(rest.Bearer(r))
	for _, rn := range s.runners {
		if rn.Credential == hash {
			return rn, nil
		}
	}
	return nil, errGone
}

// present reports whether a listener speaks for the runner: it polls, or is about to.
func (s *Server) present(rn *state.Runner) bool {
	return rn.Session != "" && (rn.Polls > 0 || !rn.Abandoned && s.now().Sub(rn.LastSeen) < sessionGrace)
}

// openSession lets one listener speak for a runner. A second one is refused while the first is there. A job that was running
// on a listener now gone went with it.
func (s *Server) openSession(r *http.Request) (a *rest.Answer, err error) {
	err = s.change(func() error {
		rn, err := s.caller(r)
		if err != nil {
			return err
		}
		if s.present(rn) {
			return rest.Problem(http.StatusConflict, "A session for this runner already exists.")
		}
		if j := s.jobs[rn.JobID]; j != nil && j.Status == state.StatusInProgress {
			s.complete(j, state.ConclusionFailure, lostMessage)
		}
		if s.runners[rn.ID] == nil { // it was ephemeral, and that was its job
			return errGone
		}
		secret, hash := newSecret()
		rn.Session, rn.Abandoned, rn.Heard, rn.LastSeen = hash, false, true, s.now()
		clear(rn.Sent)
		s.put(state.KindRunner, rn.ID, rn)
		a = rest.Created(protocol.Session{ID: secret})
		return nil
	})
	return a, err
}

func (s *Server) closeSession(r *http.Request) (*rest.Answer, error) {
	return nil, s.change(func() error {
		rn, err := s.sessionOf(r)
		if err != nil {
			return err
		}
		rn.Session = ""
		s.put(state.KindRunner, rn.ID, rn)
		rn.Notify()
		if j := s.jobs[rn.JobID]; j != nil && j.Status == state.StatusQueued {
			s.unassign(j)
		}
		return nil
	})
}

func (s *Server) sessionOf(r *http.Request) (*state.Runner, error) {
	rn, err := s.caller(r)
	if err != nil {
		return nil, err
	}
	if rn.Session != hashOf(r.URL.Query().Get("session")) {
		return nil, rest.Problem(http.StatusConflict, "A session for this runner already exists.")
	}
	return rn, nil
}

// poll holds a listener's call until there is a message for it.
func (s *Server) poll(r *http.Request) (*rest.Answer, error) {
	var rn *state.Runner
	err := s.change(func() (err error) {
		if rn, err = s.sessionOf(r); err == nil {
			rn.Polls++
			rn.Heard = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	a, err := s.awaitMessage(r, rn)
	s.mu.Lock()
	defer s.mu.Unlock()
	rn.Polls--
	rn.LastSeen = s.now()
	rn.Abandoned = r.Context().Err() != nil
	return a, err
}

func (s *Server) awaitMessage(r *http.Request, rn *state.Runner) (*rest.Answer, error) {
	expired := time.NewTimer(protocol.PollTime)
	defer expired.Stop()
	for {
		s.mu.Lock()
		_, err := s.sessionOf(r)
		m, changed := s.nextMessage(rn), rn.Changed
		s.mu.Unlock()
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
		case <-s.stop:
			return nil, rest.Problem(http.StatusServiceUnavailable, "the GitHub stand-in is stopping")
		}
	}
}

// acquire begins an assigned job. A repeated call by the same runner gets the job again: the first answer may have been lost.
func (s *Server) acquire(r *http.Request) (a *rest.Answer, err error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	err = s.change(func() error {
		rn, err := s.caller(r)
		if err != nil {
			return err
		}
		j := s.jobs[id]
		if j == nil || rn.JobID != id {
			return rest.Problem(http.StatusConflict, "The job is not assigned to this runner any more.")
		}
		secret, hash := newSecret()
		j.Token = hash
		s.put(state.KindJob, j.ID, j)
		if j.Status == state.StatusQueued {
			s.begin(j)
		}
		a = rest.OK(s.jobDescription(j, secret))
		return nil
	})
	return a, err
}

func (s *Server) jobDescription(j *state.Job, secret string) protocol.Job {
	github := s.site().GitHubContext(s.runs[j.RunID])
	github["job"], github["run_attempt"] = j.Key, strconv.Itoa(j.Attempt)
	url, key := s.giveIDTokens(j)
	return protocol.Job{
		ID: j.ID, Name: j.Name, Token: secret, GitHub: github, Matrix: j.Matrix, Env: j.Env, Steps: j.Steps,
		IDTokenURL: url, IDTokenSecret: key, Hosted: j.Hosted,
	}
}

// ofWorker runs f on the job of the path if the call bears the token of its worker.
func (s *Server) ofWorker(r *http.Request, f func(*state.Job) error) error {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return err
	}
	return s.change(func() error {
		j := s.jobs[id]
		if j == nil || j.Token == "" || j.Token != hashOf(rest.Bearer(r)) {
			return rest.Problem(http.StatusConflict, "The job is not running any more.")
		}
		return f(j)
	})
}

func (s *Server) jobLog(r *http.Request) (*rest.Answer, error) {
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "offset is not a number")
	}
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, rest.MaxBody))
	if err != nil {
		return nil, rest.Problem(http.StatusBadRequest, "read log: %v", err)
	}
	var id int64
	if err := s.ofWorker(r, func(j *state.Job) error { id = j.ID; return nil }); err != nil {
		return nil, err
	}
	return nil, s.logs.Append(id, offset, data)
}

func (s *Server) jobSteps(r *http.Request) (*rest.Answer, error) {
	var steps []protocol.StepState
	if err := rest.Decode(r, &steps, true); err != nil {
		return nil, err
	}
	return nil, s.ofWorker(r, func(j *state.Job) error {
		j.Progress = steps
		s.put(state.KindJob, j.ID, j)
		return nil
	})
}

func (s *Server) jobComplete(r *http.Request) (*rest.Answer, error) {
	var q protocol.Complete
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	switch q.Conclusion {
	case state.ConclusionSuccess, state.ConclusionFailure, state.ConclusionCancelled:
	default:
		return nil, rest.Problem(http.StatusUnprocessableEntity, "conclusion %q is none of success, failure and cancelled", q.Conclusion)
	}
	return nil, s.ofWorker(r, func(j *state.Job) error {
		s.complete(j, q.Conclusion, q.Reason)
		return nil
	})
}
