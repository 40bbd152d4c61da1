package githubsim_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v62/github"
)

// receiver takes deliveries as go-github does.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []string // "event action", in order
	ids    []string
	events []any
	bodies []map[string]any
	bad    []string
}

func newReceiver(t *testing.T, secret string) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !strings.HasPrefix(req.Header.Get("X-Hub-Signature-256"), "sha256=") {
			r.bad = append(r.bad, "no signature")
		}
		body, err := github.ValidatePayload(req, []byte(secret))
		if err != nil {
			r.bad = append(r.bad, err.Error())
			return
		}
		event, err := github.ParseWebHook(github.WebHookType(req), body)
		if err != nil {
			r.bad = append(r.bad, err.Error())
			return
		}
		var raw map[string]any
		if err := json.Unmarshal(body, &raw); err != nil {
			r.bad = append(r.bad, err.Error())
		}
		checkDelivery(t, github.WebHookType(req), body)
		r.events, r.bodies, r.ids = append(r.events, event), append(r.bodies, raw), append(r.ids, github.DeliveryID(req))
		r.got = append(r.got, github.WebHookType(req)+" "+raw["action"].(string))
		io.WriteString(w, "ok")
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) await(t *testing.T, n int) []string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		r.mu.Lock()
		got, bad := slices.Clone(r.got), slices.Clone(r.bad)
		r.mu.Unlock()
		if len(bad) > 0 {
			t.Fatal(bad)
		}
		if len(got) >= n {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d deliveries of %d: %v", len(got), n, got)
		}
	}
}

func (s *standin) deliverTo(r *receiver, secret string, loseEvery, repeatEvery int) {
	s.t.Helper()
	s.call(204, "PUT", "/_standin/webhooks", map[string]any{
		"target": r.URL, "secret": secret, "lose_every": loseEvery, "repeat_every": repeatEvery,
	}, nil)
}

// ofOneJob are the deliveries of a run with one job, in order.
var ofOneJob = []string{
	"workflow_run requested", "workflow_job queued", "workflow_job in_progress", "workflow_run in_progress", "workflow_job completed",
	"workflow_run completed",
}

// TestDeliveriesOfARun reads them with go-github. That they have every field is the receiver's to check, as for every delivery.
func TestDeliveriesOfARun(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	s.deliverTo(r, "hush", 0, 0)
	s.online("a", "box")
	s.startExample(4711, "name: sums\n"+oneJob)
	if d := cmp.Diff(ofOneJob, r.await(t, len(ofOneJob))); d != "" {
		t.Fatal(d)
	}
	if ids := slices.Compact(slices.Sorted(slices.Values(r.ids))); len(ids) != len(r.ids) {
		t.Errorf("delivery ids: %v", r.ids)
	}
	queued, done := r.events[1].(*github.WorkflowJobEvent), r.events[4].(*github.WorkflowJobEvent)
	for _, e := range []*github.WorkflowJobEvent{queued, done} {
		j := e.WorkflowJob
		if j.GetRunID() != 4711 || j.GetRunAttempt() != 1 || j.GetName() != "j" || j.GetWorkflowName() != "sums" || !slices.Equal(j.Labels, []string{"box"}) ||
			e.GetRepo().GetFullName() != "acme/app" || e.GetOrg().GetLogin() != "acme" || e.GetSender().GetLogin() == "" {
			t.Errorf("%s", r.bodies[1])
		}
	}
	if queued.WorkflowJob.GetStatus() != "queued" || queued.WorkflowJob.RunnerID != nil || queued.WorkflowJob.Conclusion != nil {
		t.Errorf("queued: %v", r.bodies[1])
	}
	if j := done.WorkflowJob; j.GetConclusion() != "success" || j.GetRunnerName() != "a" || j.GetRunnerID() != 1 || j.GetCompletedAt().IsZero() || len(j.Steps) != 3 {
		t.Errorf("completed: %v", r.bodies[4])
	}
	run := r.events[5].(*github.WorkflowRunEvent)
	if run.WorkflowRun.GetID() != 4711 || run.WorkflowRun.GetConclusion() != "success" || run.GetWorkflow().GetName() != "sums" {
		t.Errorf("run completed: %v", r.bodies[5])
	}
}

func TestDeliveriesOfACancelledRunAndItsRerun(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	s.deliverTo(r, "hush", 0, 0)
	id := s.startRun("on: push\njobs:\n  a: {runs-on: box, steps: [{run: 'true'}]}\n  b: {needs: a, runs-on: box, steps: [{run: 'true'}]}\n")
	path := fmt.Sprintf("/_standin/runs/%d", id)
	s.call(202, "POST", path+"/cancel", nil, nil)
	s.call(201, "POST", path+"/rerun", nil, nil)
	want := []string{
		"workflow_run requested", "workflow_job queued", "workflow_job completed", "workflow_job completed", "workflow_run completed",
		"workflow_run requested", "workflow_job queued",
	}
	if d := cmp.Diff(want, r.await(t, len(want))); d != "" {
		t.Fatal(d)
	}
	if j := r.events[2].(*github.WorkflowJobEvent).WorkflowJob; j.GetConclusion() != "cancelled" || j.RunnerID != nil || j.GetRunAttempt() != 1 {
		t.Errorf("cancelled while it was queued: %s", r.bodies[2])
	}
	if run := r.events[5].(*github.WorkflowRunEvent).WorkflowRun; run.GetRunAttempt() != 2 || run.GetStatus() != "queued" || run.Conclusion != nil {
		t.Errorf("again: %v", r.bodies[5])
	}
	if j := r.events[6].(*github.WorkflowJobEvent).WorkflowJob; j.GetRunAttempt() != 2 || j.GetStatus() != "queued" {
		t.Errorf("again: %v", r.bodies[6])
	}
}

func TestDeliveriesAreLostAndRepeated(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	s.deliverTo(r, "hush", 3, 2)
	s.online("a", "box")
	s.startRun(oneJob)
	want := []string{
		"workflow_run requested", "workflow_job queued", "workflow_job queued", // 3: lost
		"workflow_run in_progress", "workflow_run in_progress", "workflow_job completed", // 6: lost
	}
	if d := cmp.Diff(want, r.await(t, len(want))); d != "" {
		t.Error(d)
	}
	if r.ids[1] != r.ids[2] || r.ids[0] == r.ids[1] {
		t.Errorf("a repeated delivery has the id of the first: %v", r.ids)
	}
}

func TestWebhooksOutliveARestart(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	s.deliverTo(r, "hush", 0, 0)
	s.stop()
	s.up()
	s.startRun(oneJob)
	r.await(t, 2)
	for _, target := range []string{"nonsense", "ftp://x/y"} {
		s.call(422, "PUT", "/_standin/webhooks", map[string]any{"target": target}, nil)
	}
	s.call(422, "PUT", "/_standin/webhooks", map[string]any{"target": r.URL, "lose_every": -1}, nil)
}
