package githubsim_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

// puppet is a runner whose listener is the test itself.
type puppet struct {
	s       *standin
	auth    http.Header
	session string
}

func (s *standin) newPuppet(name string) *puppet {
	s.t.Helper()
	p := &puppet{s: s}
	var reg protocol.Registered
	s.callWith(http.Header{"Authorization": {"Bearer " + s.token("registration")}}, 201, "POST", protocol.PathRegister,
		protocol.Register{URL: s.url + "/acme/app", Name: name, Labels: []string{"box"}}, &reg)
	p.auth = http.Header{"Authorization": {"Bearer " + reg.Credential}}
	var session protocol.Session
	s.callWith(p.auth, 201, "POST", protocol.PathSession, nil, &session)
	p.session = session.ID
	return p
}

func (p *puppet) poll() protocol.Message {
	p.s.t.Helper()
	var m protocol.Message
	p.s.callWith(p.auth, 200, "GET", protocol.PathMessages+"?session="+p.session, nil, &m)
	return m
}

const oneJob = "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"

func TestJobsAreSpreadOverRunnersThatHaveJustCome(t *testing.T) {
	s := start(t)
	first, second := s.newPuppet("first"), s.newPuppet("second")
	s.startRun("on: push\njobs:\n  a: {runs-on: box, steps: [{run: 'true'}]}\n  b: {runs-on: box, steps: [{run: 'true'}]}\n")
	for _, r := range s.runners() {
		if !r.Busy {
			t.Errorf("%s was given none of the two jobs", r.Name)
		}
	}
	if a, b := first.poll(), second.poll(); a.Kind != protocol.MessageJob || b.Kind != protocol.MessageJob || a.JobID == b.JobID {
		t.Errorf("they were told %+v and %+v", a, b)
	}
}

func TestJobNotPickedUpGoesToAnotherRunner(t *testing.T) {
	s := start(t)
	first := s.newPuppet("first")
	id := s.startRun(oneJob)
	m := first.poll()
	if m.Kind != protocol.MessageJob {
		t.Fatalf("%+v", m)
	}
	if r := s.runners()[0]; !r.Busy {
		t.Errorf("an assigned runner is not busy: %+v", r)
	}
	s.clock.advance(githubsim.PickUpTime - 1)
	s.Tick()
	if !s.runners()[0].Busy {
		t.Error("the job was taken back too early")
	}
	s.clock.advance(1)
	s.Tick()
	if s.runners()[0].Busy || s.run(id).Jobs[0].Status != "queued" {
		t.Errorf("the job was not taken back: %+v", s.run(id))
	}
	if got := s.newPuppet("second").poll(); got != m {
		t.Errorf("second runner got %+v, want %+v", got, m)
	}
	s.callWith(first.auth, 409, "POST", fmt.Sprintf(protocol.PathAcquire, m.JobID), nil, nil)
}

func TestCancelThatIsNotAnsweredEndsInTime(t *testing.T) {
	s := startWith(t, githubsim.QuickTimes)
	p := s.newPuppet("deaf")
	id := s.startRun(oneJob)
	m := p.poll()
	var job protocol.Job
	s.callWith(p.auth, 200, "POST", fmt.Sprintf(protocol.PathAcquire, m.JobID), nil, &job)
	s.call(202, "POST", fmt.Sprintf("/_standin/runs/%d/cancel", id), nil, nil)
	if got := p.poll(); got.Kind != protocol.MessageCancel || got.JobID != m.JobID {
		t.Fatalf("%+v", got)
	}
	s.clock.advance(s.opts.Times.Lock - 1) // still its job
	s.Tick()
	if v := s.run(id); v.Status != "in_progress" {
		t.Fatalf("%+v", v)
	}
	polls := make(chan struct{})
	go func() { // a poll that is open keeps the runner there
		defer close(polls)
		req, _ := http.NewRequest("GET", s.url+protocol.PathMessages+"?session="+p.session, nil)
		req.Header = p.auth
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	s.await(id, "open poll", func(runView) bool {
		return len(s.calls()) > 0 && s.calls()["GET "+protocol.PathMessages] == 3
	})
	s.clock.advance(githubsim.CancelTime)
	s.Tick()
	if v := s.completed(id); v.Jobs[0].conclusion() != "cancelled" {
		t.Errorf("%+v", v)
	}
	worker := http.Header{"Authorization": {"Bearer " + job.Token}}
	s.callWith(worker, 409, "POST", fmt.Sprintf(protocol.PathComplete, m.JobID), protocol.Complete{Conclusion: "success"}, nil)
	select {
	case <-polls:
		t.Error("the cancel was given twice to one session")
	default:
	}
	s.stop()
	<-polls
}

func TestOnlyTheJobsOwnWorkerSpeaksForIt(t *testing.T) {
	s := start(t)
	p := s.newPuppet("a")
	id := s.startRun(oneJob)
	m := p.poll()
	var job protocol.Job
	s.callWith(p.auth, 200, "POST", fmt.Sprintf(protocol.PathAcquire, m.JobID), nil, &job)
	for _, auth := range map[string]http.Header{"runner": p.auth, "stranger": {"Authorization": {"Bearer x"}}, "anonymous": {}} {
		for _, path := range []string{protocol.PathComplete, protocol.PathSteps} {
			var body any = []protocol.StepState{}
			if path == protocol.PathComplete {
				body = protocol.Complete{Conclusion: "success"}
			}
			s.callWith(auth, 409, "POST", fmt.Sprintf(path, m.JobID), body, nil)
		}
		s.callWith(auth, 409, "POST", fmt.Sprintf(protocol.PathLog, m.JobID)+"?offset=0", "text", nil)
	}
	s.callWith(http.Header{"Authorization": {"Bearer x"}}, 401, "POST", protocol.PathSession, nil, nil)
	s.callWith(http.Header{"Authorization": {"Bearer " + job.Token}}, 204, "POST", fmt.Sprintf(protocol.PathComplete, m.JobID), protocol.Complete{Conclusion: "success"}, nil)
	if v := s.completed(id); *v.Conclusion != "success" {
		t.Errorf("%+v", v)
	}
}

func TestRepeatedAndMissingPiecesOfALog(t *testing.T) {
	s := start(t)
	p := s.newPuppet("a")
	id := s.startRun(oneJob)
	m := p.poll()
	var job protocol.Job
	s.callWith(p.auth, 200, "POST", fmt.Sprintf(protocol.PathAcquire, m.JobID), nil, &job)
	worker := http.Header{"Authorization": {"Bearer " + job.Token}}
	send := func(offset int, text string) { // the body is JSON, so each piece is two quotes longer
		s.callWith(worker, 204, "POST", fmt.Sprintf(protocol.PathLog+"?offset=%d", m.JobID, offset), text, nil)
	}
	send(0, "one")
	send(0, "one")
	send(3, "xtwo")
	if got, want := s.run(id).Jobs[0].Log, `"one"two"`; got[:6] != want[:6] || len(got) != 9 {
		t.Errorf("log %q", got)
	}
	send(100, "late")
	if got, want := s.run(id).Jobs[0].Log, "[the first 100 bytes of this log are not kept]\n\"late\""; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	s.callWith(worker, 422, "POST", fmt.Sprintf(protocol.PathLog+"?offset=-1", m.JobID), "x", nil)
}
