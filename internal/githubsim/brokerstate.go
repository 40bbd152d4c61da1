package githubsim

import (
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/broker"
	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// brokerState is the server as its broker sees it.
type brokerState struct{ s *Server }

var _ broker.State = brokerState{}

func (b brokerState) Change(f func() error) error { return b.s.change(f) }

func (b brokerState) Look(f func()) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	f()
}

func (b brokerState) Now() time.Time                 { return b.s.now() }
func (b brokerState) Job(id int64) *state.Job        { return b.s.jobs[id] }
func (b brokerState) SaveRunner(r *state.Runner)     { b.s.put(state.KindRunner, r.ID, r) }
func (b brokerState) SaveJob(j *state.Job)           { b.s.put(state.KindJob, j.ID, j) }
func (b brokerState) Begin(j *state.Job)             { b.s.begin(j) }
func (b brokerState) Unassign(j *state.Job)          { b.s.unassign(j) }
func (b brokerState) Removed(credential string) bool { return b.s.removed[credential] }
func (b brokerState) Versions() state.Versions       { return b.s.versions }
func (b brokerState) Stopped() <-chan struct{}       { return b.s.stop }

func (b brokerState) Complete(j *state.Job, conclusion, reason string) {
	b.s.complete(j, conclusion, reason)
}

func (b brokerState) AppendLog(job, offset int64, data []byte) error {
	return b.s.logs.Append(job, offset, data)
}

func (b brokerState) RunnerOf(credential string) *state.Runner {
	for _, rn := range b.s.runners {
		if rn.Credential == credential {
			return rn
		}
	}
	return nil
}

func (b brokerState) Describe(j *state.Job, token string) protocol.Job {
	github := b.s.site().GitHubContext(b.s.runs[j.RunID])
	github["job"], github["run_attempt"] = j.Key, strconv.Itoa(j.Attempt)
	url, key := b.s.giveIDTokens(j)
	return protocol.Job{
		ID: j.ID, Name: j.Name, Token: token, GitHub: github, Matrix: j.Matrix, Env: j.Env, Steps: j.Steps,
		IDTokenURL: url, IDTokenSecret: key, Hosted: j.Hosted,
	}
}
