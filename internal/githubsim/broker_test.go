package githubsim_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/runner/runnerfiles"
)

// lockTime is how long GitHub gives a runner that does not renew the lock of its job.
const lockTime = 10 * time.Minute

// hold keeps calls of a route from their answer until the caller hangs up.
func (s *standin) hold(route string) {
	s.t.Helper()
	s.call(204, "POST", "/_standin/faults", map[string]any{"route": route, "status": 503, "count": 100, "delay_ms": patience.Milliseconds()}, nil)
}

// TestJobAcquiredAndNeverStartedIsLost stops a listener after "Running job:" and before there is a worker: the server hears nothing
// of it, neither from the listener nor from the next one.
func TestJobAcquiredAndNeverStartedIsLost(t *testing.T) {
	for name, stop := range map[string]syscall.Signal{"stopped": syscall.SIGINT, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			h, l := s.online("a", "box")
			s.hold("POST " + route(protocol.PathRenew))
			id := s.startRun(oneJob)
			l.awaitOutput("Running job: j")
			if err := l.cmd.Process.Signal(stop); err != nil {
				t.Fatal(err)
			}
			if code := l.exitCode(); stop == syscall.SIGINT && code != 0 {
				t.Errorf("exit code %d:\n%s", code, l.output())
			}
			s.awaitRunner("silent", func(r runnerView) bool { return !r.Polling })
			h.listen().awaitOutput("Listening for Jobs")
			s.clock.advance(lockTime - 1)
			s.Tick()
			if v := s.run(id); v.Status != "in_progress" || len(v.Jobs) != 1 || v.Jobs[0].Log != "" {
				t.Errorf("before its lock ran out: %+v", v)
			}
			s.clock.advance(1)
			s.Tick()
			if v := s.completed(id); *v.Conclusion != "failure" || !strings.Contains(v.Jobs[0].Log, "##[error]The self-hosted runner lost communication with the server.") {
				t.Errorf("%+v", v)
			}
		})
	}
}

// route is a path of the protocol as faults name it.
func route(path string) string { return strings.ReplaceAll(path, "%d", "{id}") }

func TestJobNotAcquiredGoesBackWhenItsListenerStops(t *testing.T) {
	for _, at := range []string{protocol.PathAck, protocol.PathAcquire} {
		t.Run(route(at), func(t *testing.T) {
			s := start(t)
			h, l := s.online("a", "box")
			s.hold("POST " + route(at))
			id := s.startRun(oneJob)
			for s.calls()["POST "+route(at)] == 0 {
				time.Sleep(time.Millisecond)
			}
			if err := l.cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if code := l.exitCode(); code != 0 || strings.Contains(l.output(), "Running job") {
				t.Errorf("exit code %d:\n%s", code, l.output())
			}
			if v := s.run(id); v.Jobs[0].Status != "queued" {
				t.Errorf("%+v", v)
			}
			s.call(204, "DELETE", "/_standin/faults", nil, nil)
			h.listen()
			if v := s.completed(id); *v.Conclusion != "success" {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestAcknowledgementOfAJobThatIsNotTheRunners(t *testing.T) {
	s := start(t)
	p := s.newPuppet("a")
	s.startRun(oneJob)
	m := p.poll()
	s.callWith(p.auth, 204, "POST", fmt.Sprintf(protocol.PathAck, m.JobID), nil, nil)
	s.callWith(p.auth, 404, "POST", fmt.Sprintf(protocol.PathAck, m.JobID+1), nil, nil)
}

func TestLockIsRenewedWhileTheJobRuns(t *testing.T) {
	times := githubsim.QuickTimes
	times.Lock = 100 * time.Millisecond
	s := startWith(t, times)
	_, l := s.online("a", "box")
	id := s.startRun(sleeper)
	s.awaitLog(id, "up\n")
	renewals := func() int { return s.calls()["POST "+route(protocol.PathRenew)] }
	s.await(id, "renewals", func(runView) bool { return renewals() > 3 })
	s.call(204, "POST", "/_standin/faults", map[string]any{"route": "POST " + route(protocol.PathRenew), "status": 409}, nil)
	if v := s.completed(id); v.Jobs[0].conclusion() != "cancelled" {
		t.Errorf("a job whose lock is gone: %+v", v)
	}
	l.awaitOutput("Job j completed with result: Canceled")
}

func TestSessionOfAListenerThatHungUpKeepsOthersOut(t *testing.T) {
	s := startWith(t, githubsim.Times{})
	p := s.newPuppet("a")
	ctx, hangUp := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+protocol.PathMessages+"?session="+p.session, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = p.auth
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	s.awaitRunner("polling", func(r runnerView) bool { return r.Polling })
	hangUp()
	<-ended
	s.awaitRunner("silent", func(r runnerView) bool { return !r.Polling })
	s.clock.advance(2*time.Minute - 1)
	s.callWith(p.auth, 409, "POST", protocol.PathSession, nil, nil)
	if r := s.runners()[0]; r.Status != "online" {
		t.Errorf("its status did not lag: %+v", r)
	}
	s.clock.advance(1)
	if r := s.runners()[0]; r.Status != "offline" {
		t.Errorf("%+v", r)
	}
	s.callWith(p.auth, 201, "POST", protocol.PathSession, nil, nil)
}

func TestListenerRetriesASessionConflictAndGivesUp(t *testing.T) {
	times := githubsim.QuickTimes
	times.ConflictPause, times.ConflictLimit = time.Millisecond, 8*time.Millisecond
	s := startWith(t, times)
	h, _ := s.online("a", "box")
	l := h.listen()
	code, said := l.exitCode(), strings.Count(l.output(), "A session for this runner already exists.\n")
	if code != 5 || said != 8+1 || // and once in "Failed to create session."
		!strings.Contains(l.output(), "Stop retry on SessionConflictException after retried for 0.008 seconds.") {
		t.Errorf("exit code %d, %d refusals:\n%s", code, said, l.output())
	}
}

func TestRealTimesReachTheRunner(t *testing.T) {
	s := startWith(t, githubsim.Times{Configure: time.Millisecond, Listen: 2 * time.Millisecond})
	h := s.newHost("a")
	h.configure("box")
	text, err := os.ReadFile(h.dir + "/" + runnerfiles.Runner)
	if err != nil {
		t.Fatal(err)
	}
	settings, _, err := runnerfiles.Load(h.dir)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	want := protocol.Times{
		ConflictPause: 30 * time.Second, ConflictLimit: 4 * time.Minute, Renew: time.Minute, Configure: time.Millisecond, Listen: 2 * time.Millisecond,
	}
	if settings.Times != want {
		t.Errorf("%+v, want %+v", settings.Times, want)
	}
}

func TestBusyFlagLagsAndDeletionDoesNot(t *testing.T) {
	s := startWith(t, githubsim.Times{})
	p := s.newPuppet("a")
	busy := func() bool {
		var got struct{ Busy bool }
		s.call(200, "GET", "/repos/acme/app/actions/runners/1", nil, &got)
		return got.Busy
	}
	id := s.startRun(oneJob)
	var job protocol.Job
	s.callWith(p.auth, 200, "POST", fmt.Sprintf(protocol.PathAcquire, p.poll().JobID), nil, &job)
	if s.call(422, "DELETE", "/repos/acme/app/actions/runners/1", nil, nil); busy() {
		t.Error("it is shown as busy at once")
	}
	if s.clock.advance(time.Minute); !busy() {
		t.Error("it is not shown as busy after a minute")
	}
	s.callWith(http.Header{"Authorization": {"Bearer " + job.Token}}, 204, "POST", fmt.Sprintf(protocol.PathComplete, job.ID), protocol.Complete{Conclusion: "success"}, nil)
	if s.completed(id); !busy() {
		t.Error("it is shown as idle at once")
	}
	if s.clock.advance(time.Minute); busy() {
		t.Error("it is shown as busy for more than a minute")
	}
}

func TestIdleJustInTimeRunnerIsRemoved(t *testing.T) {
	s := startWith(t, githubsim.Times{})
	auth := s.justInTime("a", "box")
	s.clock.advance(time.Hour) // it has not listened yet
	s.Tick()
	s.callWith(auth, 201, "POST", protocol.PathSession, nil, nil)
	s.newPuppet("registered") // is not removed
	s.clock.advance(6*time.Minute - 1)
	s.Tick()
	if r := s.runners(); len(r) != 2 {
		t.Errorf("removed too early: %+v", r)
	}
	s.clock.advance(1)
	s.Tick()
	if r := s.runners(); len(r) != 1 || r[0].Name != "registered" {
		t.Errorf("%+v", r)
	}
}

func TestJustInTimeRunnerWithAJobIsNotRemoved(t *testing.T) {
	s := startWith(t, githubsim.Times{})
	s.callWith(s.justInTime("a", "box"), 201, "POST", protocol.PathSession, nil, nil)
	s.startRun(oneJob)
	s.clock.advance(6 * time.Minute)
	if r := s.runners(); len(r) != 1 || !r[0].Busy {
		t.Errorf("%+v", r)
	}
}

// justInTime registers a just-in-time runner and returns what its listener authenticates with.
func (s *standin) justInTime(name, label string) http.Header {
	s.t.Helper()
	var made struct {
		Config string `json:"encoded_jit_config"`
	}
	s.call(201, "POST", "/repos/acme/app/actions/runners/generate-jitconfig", map[string]any{"name": name, "runner_group_id": 1, "labels": []string{label}}, &made)
	files, err := runnerfiles.Decode(made.Config)
	if err != nil {
		s.t.Fatal(err)
	}
	var key struct{ D string }
	if err := json.Unmarshal(files[runnerfiles.RSAParams][len("\xef\xbb\xbf"):], &key); err != nil {
		s.t.Fatal(err)
	}
	secret, err := base64.StdEncoding.DecodeString(key.D)
	if err != nil {
		s.t.Fatal(err)
	}
	return http.Header{"Authorization": {"Bearer " + string(secret)}}
}

func TestCallsTakeTheirTime(t *testing.T) {
	const api = 20 * time.Millisecond
	s := startWith(t, githubsim.Times{API: api})
	begun := time.Now()
	s.call(200, "GET", "/repos/acme/app/actions/runners", nil, nil)
	if took := time.Since(begun); took < api {
		t.Errorf("a call took %s", took)
	}
	for begun = time.Now(); ; begun = time.Now() {
		s.call(200, "GET", "/_standin/calls", nil, nil)
		if time.Since(begun) < api { // a busy machine may need some calls
			return
		}
	}
}

func TestClearedFaultsEndTheirDelays(t *testing.T) {
	s := start(t)
	s.call(204, "POST", "/_standin/faults", map[string]any{"route": "GET /repos/{owner}/{repo}/actions/runners", "delay_ms": patience.Milliseconds()}, nil)
	answered := make(chan int)
	go func() {
		resp, err := http.Get(s.url + "/repos/acme/app/actions/runners")
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	for s.calls()["GET /repos/{owner}/{repo}/actions/runners"] == 0 {
		time.Sleep(time.Millisecond)
	}
	for ended := false; !ended; { // the call is counted before its fault strikes
		s.call(204, "DELETE", "/_standin/faults", nil, nil)
		select {
		case status := <-answered:
			if ended = true; status == 0 || status >= 500 {
				t.Errorf("status %d", status)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
}
