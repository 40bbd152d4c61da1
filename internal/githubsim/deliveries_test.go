package githubsim_test

import (
	"context"
	"fmt"
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

// deliveries are all that the app is shown, newest first, in pages of the size.
func (a *testApp) deliveries(perPage int) (all []*github.HookDelivery, pages int) {
	a.s.t.Helper()
	opts := &github.ListCursorOptions{PerPage: perPage}
	for {
		page, resp, err := a.s.clientWith(a.token(nil)).Apps.ListHookDeliveries(context.Background(), opts)
		if err != nil {
			a.s.t.Fatal(err)
		}
		all, pages = append(all, page...), pages+1
		if resp.Cursor == "" {
			return all, pages
		}
		opts.Cursor = resp.Cursor
	}
}

func (a *testApp) awaitDeliveries(n int) []*github.HookDelivery {
	a.s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		all, _ := a.deliveries(100)
		if len(all) >= n {
			return all
		}
		if time.Now().After(deadline) {
			a.s.t.Fatalf("%d deliveries of %d", len(all), n)
		}
	}
}

func TestDeliveriesAreRemembered(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	a := s.registerApp(12, "acme")
	s.deliverTo(r, "hush", 2, 0) // the second, of the job, is lost
	s.startExample(77, oneJob)
	r.await(t, 1)
	all := a.awaitDeliveries(2)
	slices.SortFunc(all, func(x, y *github.HookDelivery) int { return strings.Compare(x.GetEvent(), y.GetEvent()) })
	lost, sent := all[0], all[1]
	if sent.GetStatus() != "OK" || sent.GetStatusCode() != 200 || sent.GetEvent() != "workflow_run" || sent.GetAction() != "requested" ||
		sent.GetGUID() != r.ids[0] || sent.GetRedelivery() || sent.GetInstallationID() != a.on["acme"] || sent.GetRepositoryID() == 0 ||
		!sent.GetDeliveredAt().Time.Equal(s.clock.Now()) {
		t.Errorf("sent: %v", sent)
	}
	if lost.GetStatus() != "timed out" || lost.GetStatusCode() != 502 || lost.GetEvent() != "workflow_job" || lost.GetAction() != "queued" {
		t.Errorf("lost: %v", lost)
	}
	full, _, err := s.clientWith(a.token(nil)).Apps.GetHookDelivery(context.Background(), lost.GetID())
	if err != nil {
		t.Fatal(err)
	}
	event, err := full.ParseRequestPayload()
	job, isJob := event.(*github.WorkflowJobEvent)
	if err != nil || !isJob || job.GetWorkflowJob().GetRunID() != 77 || full.Request.GetHeaders()["X-Github-Delivery"] != lost.GetGUID() {
		t.Errorf("payload of the lost one: %v, %v", full, err)
	}
	if _, _, err := s.clientWith(a.token(nil)).Apps.GetHookDelivery(context.Background(), 1); statusOf(err) != 404 {
		t.Errorf("unknown: %v", err)
	}
	for status, want := range map[string]int64{"failure": lost.GetID(), "success": sent.GetID()} {
		var got []struct{ ID int64 }
		s.callWith(a.auth(), 200, "GET", "/app/hook/deliveries?status="+status, nil, &got)
		if len(got) != 1 || got[0].ID != want {
			t.Errorf("%s: %v", status, got)
		}
	}
	s.callWith(a.auth(), 422, "GET", "/app/hook/deliveries?status=odd", nil, nil)
	s.callWith(a.auth(), 400, "GET", "/app/hook/deliveries?cursor=odd", nil, nil)
}

func TestRedelivery(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	a := s.registerApp(12, "acme")
	s.deliverTo(r, "hush", 1, 0) // every one is lost
	s.startRun(oneJob)
	lost := a.awaitDeliveries(2)[0]
	if _, _, err := s.clientWith(a.token(nil)).Apps.RedeliverHookDelivery(context.Background(), lost.GetID()); err != nil {
		if _, accepted := err.(*github.AcceptedError); !accepted {
			t.Fatal(err)
		}
	}
	r.await(t, 1)
	again := a.awaitDeliveries(3)[0]
	if again.GetGUID() != lost.GetGUID() || again.GetID() == lost.GetID() || !again.GetRedelivery() || again.GetStatus() != "OK" || r.ids[0] != lost.GetGUID() {
		t.Errorf("again %v of %v, received as %s", again, lost, r.ids[0])
	}
	s.callWith(a.auth(), 404, "POST", "/app/hook/deliveries/1/attempts", nil, nil)
}

func TestDeliveriesComeInPages(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	a := s.registerApp(12, "acme")
	s.deliverTo(r, "hush", 0, 0)
	for range 4 {
		s.startRun(oneJob)
	}
	want := a.awaitDeliveries(8)
	got, pages := a.deliveries(3)
	if d := cmp.Diff(want, got); d != "" || pages != 3 {
		t.Errorf("%d pages: %s", pages, d)
	}
	if !slices.IsSortedFunc(got, func(x, y *github.HookDelivery) int { return int(y.GetID() - x.GetID()) }) {
		t.Error("not the newest first")
	}
}

func TestAHookOfOneApp(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	other, a := s.registerApp(11, "acme"), s.registerApp(12, "acme")
	s.call(204, "PUT", "/_standin/webhooks", map[string]any{"target": r.URL, "secret": "hush", "app_id": 12}, nil)
	s.startRun(oneJob)
	if got := a.awaitDeliveries(2)[0]; got.GetInstallationID() != a.on["acme"] {
		t.Errorf("%v", got)
	}
	if all, _ := other.deliveries(10); len(all) != 0 {
		t.Errorf("another app sees %v", all)
	}
}

func TestFailedDeliveries(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		status  string
		code    int
	}{
		"refused": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }, "Invalid HTTP Response: 503", 503},
		"moved": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "Invalid HTTP Response: 307", 307},
		"broken":   {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "failed to connect to host", 502},
		"accepted": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }, "OK", 202},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			receiver := httptest.NewServer(tc.handler)
			defer receiver.Close()
			a := s.registerApp(12, "acme")
			s.call(204, "PUT", "/_standin/webhooks", map[string]any{"target": receiver.URL}, nil)
			s.startRun(oneJob)
			got := a.awaitDeliveries(1)[0]
			if got.GetStatus() != tc.status || got.GetStatusCode() != tc.code {
				t.Errorf("%s %d, want %s %d", got.GetStatus(), got.GetStatusCode(), tc.status, tc.code)
			}
		})
	}
}

func TestHeldDeliveriesComeLate(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	a := s.registerApp(12, "acme")
	s.deliverTo(r, "hush", 0, 0)
	s.call(204, "POST", "/_standin/webhooks/hold", map[string]any{"hold": true}, nil)
	s.online("a", "box")
	s.completed(s.startRun(oneJob))
	if all, _ := a.deliveries(10); len(all) != 0 || len(r.got) != 0 {
		t.Errorf("%v were sent", all)
	}
	s.call(204, "POST", "/_standin/webhooks/hold", map[string]any{"hold": false}, nil)
	if d := cmp.Diff(ofOneJob, r.await(t, len(ofOneJob))); d != "" {
		t.Error(d)
	}
}

// TestDeliveriesGoOutSideBySide has a receiver that answers no delivery until four have arrived.
func TestDeliveriesGoOutSideBySide(t *testing.T) {
	for name, tc := range map[string]struct {
		unordered bool
		runs      int
	}{"of several runs": {false, 4}, "of one run without order": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			var mu sync.Mutex
			there, all := 0, make(chan struct{})
			receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				mu.Lock()
				if there++; there == 4 {
					close(all)
				}
				mu.Unlock()
				<-all
			}))
			defer receiver.Close()
			a := s.registerApp(12, "acme")
			s.call(204, "PUT", "/_standin/webhooks", map[string]any{"target": receiver.URL, "unordered": tc.unordered}, nil)
			for range tc.runs {
				s.startRun("on: push\njobs:\n  a: {runs-on: x, steps: [{run: 'true'}]}\n  b: {runs-on: x, steps: [{run: 'true'}]}\n  c: {runs-on: x, steps: [{run: 'true'}]}\n")
			}
			for _, d := range a.awaitDeliveries(4) {
				if d.GetStatus() != "OK" { // it waited for the others without success
					t.Errorf("%v", d)
				}
			}
		})
	}
}

func TestThreeHundredJobsAreToldAtOnce(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	s.deliverTo(r, "hush", 0, 0)
	var jobs []string
	for i := range 300 {
		jobs = append(jobs, fmt.Sprintf("  j%d: {runs-on: box, steps: [{run: 'true'}]}\n", i))
	}
	s.startRun("on: push\njobs:\n" + strings.Join(jobs, ""))
	r.await(t, 301)
}
