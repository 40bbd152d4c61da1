package outage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/runner/runnerfiles"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const base = "http://127.0.0.1:1" // no server listens there: the wire leads to the stand-in

// runner is the listener of a host, as far as the stand-in can tell.
type runner struct {
	t          *testing.T
	handler    http.Handler
	id         int64
	credential string
	stop       context.CancelFunc
	over       *atomic.Int64

	mu   sync.Mutex
	jobs int
	busy bool
	gone bool
}

// call makes a call of the runner's own, and tells the status.
func call(ctx context.Context, t *testing.T, h http.Handler, method, path, bearer string, body, into any) int {
	text, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return 0
	}
	r, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(text))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	response := serve(h, r)
	defer response.Body.Close()
	if into != nil && response.StatusCode < 300 && response.StatusCode != http.StatusNoContent {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
	}
	return response.StatusCode
}

// startRunner registers the runner of a host as its agent does, by token or by
// JIT configuration, and has it listen. false: it could not.
func startRunner(ctx context.Context, t *testing.T, h http.Handler, r lifecycle.Record, over *atomic.Int64) (*runner, bool) {
	n := &runner{t: t, handler: h, over: over}
	switch r.Registration.Kind {
	case lifecycle.RegistrationJIT:
		files, err := runnerfiles.Decode(r.Registration.Secret.Reveal())
		dir := t.TempDir()
		if err == nil {
			err = runnerfiles.Save(dir, files)
		}
		settings, secret, err2 := runnerfiles.Load(dir)
		if err != nil || err2 != nil {
			t.Errorf("JIT configuration: %v, %v", err, err2)
			return nil, false
		}
		n.id, n.credential = settings.AgentID, secret
	default:
		var made protocol.Registered
		labels := append([]string{r.RunID}, r.Labels...)
		if call(ctx, t, h, "POST", protocol.PathRegister, r.Registration.Secret.Reveal(),
			protocol.Register{URL: r.Registration.URL, Name: r.RunnerName, Labels: labels, Replace: true}, &made) != http.StatusCreated {
			return nil, false
		}
		n.id, n.credential = made.ID, made.Credential
	}
	var session protocol.Session
	if call(ctx, t, h, "POST", protocol.PathSession, n.credential, nil, &session) != http.StatusCreated {
		return nil, false
	}
	listening, stop := context.WithCancel(ctx)
	n.stop = stop
	go n.listen(listening, session.ID)
	return n, true
}

// listen takes jobs until its registration is gone or it is stopped. A job takes
// as long as its name says.
func (n *runner) listen(ctx context.Context, session string) {
	for ctx.Err() == nil {
		var m protocol.Message
		status := call(ctx, n.t, n.handler, "GET", protocol.PathMessages+"?session="+session, n.credential, nil, &m)
		if ctx.Err() != nil {
			break
		}
		if status >= 300 {
			n.set(func() { n.gone = true })
			return
		}
		if m.Kind == protocol.MessageJob {
			n.run(ctx, m.JobID)
		}
	}
	call(context.WithoutCancel(ctx), n.t, n.handler, "DELETE", protocol.PathSession+"?session="+session, n.credential, nil, nil)
}

// run runs a job. Its listener polls and renews the job's lock while it runs, or GitHub would take it for lost.
func (n *runner) run(ctx context.Context, id int64) {
	var job protocol.Job
	if call(ctx, n.t, n.handler, "POST", fmt.Sprintf(protocol.PathAcquire, id), n.credential, nil, &job) != http.StatusOK {
		return
	}
	n.set(func() { n.jobs, n.busy = n.jobs+1, true })
	takes, err := time.ParseDuration(job.Name)
	if err != nil {
		n.t.Error(err)
	}
	go func() {
		for left := takes; left > 0; left -= time.Minute {
			call(context.WithoutCancel(ctx), n.t, n.handler, "POST", fmt.Sprintf(protocol.PathRenew, id), job.Token, nil, nil)
			time.Sleep(min(left, time.Minute))
		}
		done := protocol.Complete{Conclusion: "success"}
		if status := call(context.WithoutCancel(ctx), n.t, n.handler, "POST", fmt.Sprintf(protocol.PathComplete, id), job.Token, done, nil); status != http.StatusNoContent {
			n.t.Errorf("job %s was not to be completed: %d", job.Name, status)
		}
		n.set(func() { n.busy = false })
		n.over.Add(1)
	}()
}

func (n *runner) set(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
}

// hosts are the agents of all hosts.
type hosts struct {
	w *world
	// runners are those that listen, by name.
	runners map[string]*runner
	// over counts the jobs that they ran.
	over atomic.Int64
}

// live answers for every host, five times a second, until ctx ends.
func (a *hosts) live(ctx context.Context) {
	for ctx.Err() == nil {
		for _, r := range a.w.records() {
			if r.State == lifecycle.StateTerminated {
				a.w.compute.Kill(r.InstanceID)
				continue
			}
			a.w.compute.Boot(r.InstanceID)
			if err := a.w.store.ForHost(r.HostKey).PutReport(ctx, a.report(ctx, r)); err != nil && ctx.Err() == nil {
				a.w.t.Errorf("put report: %v", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (a *hosts) report(ctx context.Context, r lifecycle.Record) lifecycle.Report {
	p := lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: time.Now(), Assignment: r.Assignment}
	n := a.runners[r.RunnerName]
	if n != nil {
		n.set(func() { p.Jobs, p.Busy = n.jobs, n.busy })
	}
	switch {
	case r.Releasing() && !p.Busy:
		a.deregister(ctx, r, n, &p)
	case r.Pooled():
		p.Signal = lifecycle.SignalRemoveRegOK
	case r.Registration != nil || n != nil:
		a.register(ctx, r, n, &p)
	}
	return p
}

func (a *hosts) register(ctx context.Context, r lifecycle.Record, n *runner, p *lifecycle.Report) {
	p.Signal = lifecycle.SignalRegOK
	if n != nil {
		return
	}
	// GitHub's API is part of a registration by token. One by JIT needs it no more.
	if !a.w.wire.down() || r.Registration.Kind == lifecycle.RegistrationJIT {
		if n, ok := startRunner(ctx, a.w.t, a.w.handler, r, &a.over); ok {
			a.runners[r.RunnerName] = n
			return
		}
	}
	p.Signal, p.Cause, p.Detail = lifecycle.SignalRegFailed, lifecycle.CauseGitHub, "GitHub does not answer"
}

// deregister ends the runner. Without a token to remove it, it waits for one.
func (a *hosts) deregister(ctx context.Context, r lifecycle.Record, n *runner, p *lifecycle.Report) {
	p.Jobs = 0
	if n != nil && r.JobsOf == "" {
		switch {
		case r.Registration == nil || r.Registration.Kind != lifecycle.RegistrationRemove:
			return
		case a.w.wire.down(), call(ctx, a.w.t, a.w.handler, "POST", protocol.PathRemove, r.Registration.Secret.Reveal(),
			protocol.Remove{URL: r.Registration.URL, ID: n.id}, nil) >= http.StatusMultipleChoices:
			p.Signal, p.Cause, p.Detail = lifecycle.SignalRemoveRegFailed, lifecycle.CauseGitHub, "GitHub does not answer"
			return
		}
	}
	if n != nil {
		n.stop()
		delete(a.runners, r.RunnerName)
	}
	p.Signal = lifecycle.SignalRemoveRegOK
}
