package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
)

func TestWorkflowRun(t *testing.T) {
	f := newFake()
	f.runs = []map[string]any{{
		"id": 7, "run_attempt": 2, "event": "pull_request", "head_branch": "topic", "path": ".github/workflows/ci.yml@main",
		"status": "completed", "conclusion": "failure",
		"repository":      map[string]any{"id": 1, "full_name": "acme/app", "owner": map[string]any{"id": 2}},
		"head_repository": map[string]any{"id": 3, "full_name": "mallory/app"},
	}, {"id": 8, "status": "queued", "run_attempt": 1, "head_repository": nil}}
	for _, organisation := range []bool{false, true} {
		c := newClient(t, github.Config{Transport: direct{f}, Organization: organisation})
		want := lifecycle.WorkflowRun{
			RunID: "7", RunAttempt: 2, Repository: "acme/app", RepositoryID: 1, OwnerID: 2, HeadRepositoryID: 3,
			Event: "pull_request", HeadBranch: "topic", Path: ".github/workflows/ci.yml@main", Status: "completed", Conclusion: "failure",
		}
		got, err := c.WorkflowRun(t.Context(), "acme/app", "7")
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v %s", err, d)
		}
		want = lifecycle.WorkflowRun{RunID: "8", RunAttempt: 1, Repository: "acme/app", Status: "queued"}
		got, err = c.WorkflowRun(t.Context(), "acme/app", "8")
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v %s", err, d)
		}
		for _, id := range []string{"9", "", "x", "job:7", "-7", "0", "7/cancel", "99999999999999999999"} {
			if _, err := c.WorkflowRun(t.Context(), "acme/app", id); !errors.Is(err, lifecycle.ErrNotFound) {
				t.Errorf("run %q: got %v", id, err)
			}
		}
		if calls := f.callsOf(); len(calls) != 4 {
			t.Errorf("got %v, want the two runs, the one that is not there and a look at the runs", calls)
		}
	}
}

func TestWorkflowJob(t *testing.T) {
	f := newFake()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.jobs = map[int64][]map[string]any{7: {{
		"id": 70, "run_id": 7, "run_attempt": 2, "labels": []string{"small", "linux"}, "status": "in_progress", "runner_name": "remuda-1-i-1",
		"created_at": at, "started_at": at.Add(time.Minute), "completed_at": nil,
	}}}
	c := newClient(t, github.Config{Transport: direct{f}})
	want := lifecycle.WorkflowJob{
		ID: 70, Repository: "acme/app", RunID: "7", RunAttempt: 2, Labels: []string{"small", "linux"},
		Status: "in_progress", RunnerName: "remuda-1-i-1", QueuedAt: at, StartedAt: at.Add(time.Minute),
	}
	got, err := c.WorkflowJob(t.Context(), "acme/app", 70)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	if _, err := c.WorkflowJob(t.Context(), "acme/app", 71); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// What the credentials may not see is not gone: GitHub answers 404 to both.
func TestWhatCannotBeSeenIsNotGone(t *testing.T) {
	f := newFake()
	c := newClient(t, github.Config{Transport: direct{f}})
	_, err := c.WorkflowRun(t.Context(), "acme/hidden", "7")
	if err == nil || errors.Is(err, lifecycle.ErrNotFound) || !errors.Is(err, lifecycle.ErrRefused) {
		t.Errorf("run: got %v", err)
	}
	_, err = c.WorkflowJob(t.Context(), "acme/hidden", 7)
	if err == nil || errors.Is(err, lifecycle.ErrNotFound) || !errors.Is(err, lifecycle.ErrRefused) {
		t.Errorf("job: got %v", err)
	}
}

func TestAnswersOfSomethingElse(t *testing.T) {
	for _, body := range []string{``, `null`, `{}`, `{"id":8}`, `[]`} {
		f := newFake()
		f.before = func(w http.ResponseWriter, _ *http.Request) bool { answer(w, http.StatusOK, body); return true }
		c := newClient(t, github.Config{Transport: direct{f}})
		if _, err := c.WorkflowRun(t.Context(), "acme/app", "7"); !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("run of %q: got %v", body, err)
		}
		if _, err := c.WorkflowJob(t.Context(), "acme/app", 7); !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("job of %q: got %v", body, err)
		}
	}
}

func TestQueuedJobs(t *testing.T) {
	f := newFake()
	f.jobs = map[int64][]map[string]any{}
	add := func(run int, status string, jobs ...string) {
		f.runs = append([]map[string]any{{"id": run, "status": status}}, f.runs...) // the newest first
		for i, job := range jobs {
			f.jobs[int64(run)] = append(f.jobs[int64(run)], map[string]any{"id": run*1000 + i, "run_id": run, "status": job, "labels": []string{"x"}})
		}
	}
	add(1, "in_progress", "completed", "in_progress", "queued")
	add(2, "completed", "queued") // cannot be
	add(3, "queued", "queued", "waiting")
	add(4, "queued")                       // deleted by now: its jobs are 404
	add(6, "waiting", "waiting", "queued") // one of its jobs waits for an approval
	add(7, "pending", "pending", "queued")
	add(8, "requested", "queued")
	add(5, "in_progress", slices.Repeat([]string{"queued"}, 150)...)
	for i := range 120 {
		add(10+i, "queued", "queued")
	}
	c := newClient(t, github.Config{Transport: direct{f}})
	got, err := c.QueuedJobs(t.Context(), "acme/app")
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, j := range got {
		if j.Repository != "acme/app" || j.Status != "queued" || j.RunID != fmt.Sprint(j.ID/1000) {
			t.Errorf("got %+v", j)
		}
		ids = append(ids, j.ID)
	}
	want := []int64{1002, 3000}
	for i := range 150 {
		want = append(want, int64(5000+i))
	}
	want = append(want, 6001, 7001, 8000)
	for i := range 120 {
		want = append(want, int64((10+i)*1000))
	}
	if d := cmp.Diff(want, ids); d != "" {
		t.Error(d)
	}
	if jobs, err := c.QueuedJobs(t.Context(), "acme/hidden"); !errors.Is(err, lifecycle.ErrRefused) {
		t.Errorf("got %v, %v", jobs, err)
	}
}

// However much is queued, one look is bounded, and begins with the oldest.
func TestQueuedJobsAreBounded(t *testing.T) {
	f := newFake()
	f.jobs = map[int64][]map[string]any{}
	for i := 999; i > 0; i-- {
		f.runs = append(f.runs, map[string]any{"id": i, "status": "queued"})
		f.jobs[int64(i)] = []map[string]any{{"id": i, "run_id": i, "status": "queued"}}
	}
	c := newClient(t, github.Config{Transport: direct{f}})
	got, err := c.QueuedJobs(t.Context(), "acme/app")
	if err != nil || len(got) != 200 || got[0].ID != 500 || f.count() != 209 {
		t.Errorf("%d jobs by %d calls: %v", len(got), f.count(), err)
	}
}

// attempt is one attempt of GitHub's to hand over a webhook.
func attempt(id int, guid string, minute, status int) map[string]any {
	return map[string]any{
		"id": id, "guid": guid, "delivered_at": time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC), "status_code": status,
		"event": "workflow_job", "action": "queued",
		"request": map[string]any{"headers": map[string]any{}, "payload": map[string]any{"action": "queued", "of": guid}},
	}
}

func TestMissedDeliveries(t *testing.T) {
	f := newFake()
	apps := f.withApps(3)
	f.apps[0].deliveries = []map[string]any{
		attempt(9, "again in vain", 39, 502), attempt(8, "again", 38, 200), attempt(7, "over", 37, 202), attempt(6, "timed out", 36, 0),
		attempt(5, "again", 35, 500), attempt(4, "again in vain", 34, 500), attempt(3, "redirected", 33, 302), attempt(2, "too old", 20, 500),
	}
	for i := range 250 { // so that there are pages
		f.apps[1].deliveries = append(f.apps[1].deliveries, attempt(1000-i, fmt.Sprint("fine ", i), 35, 200))
	}
	f.apps[1].deliveries = append(f.apps[1].deliveries, attempt(10, "of the second", 35, 503))
	c := newClient(t, github.Config{Transport: direct{f}, Apps: apps})
	got, err := c.MissedDeliveries(t.Context(), time.Date(2026, 1, 2, 3, 30, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	missed := func(id int64, guid string, minute int) delivery.Missed {
		return delivery.Missed{ID: id, DeliveryID: guid, Event: "workflow_job", DeliveredAt: time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)}
	}
	want := []delivery.Missed{missed(3, "redirected", 33), missed(4, "again in vain", 34), missed(10, "of the second", 35), missed(6, "timed out", 36)}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, m := range got {
		payload, err := c.DeliveryPayload(t.Context(), m)
		if want := fmt.Sprintf(`{"action":"queued","of":%q}`, m.DeliveryID); err != nil || string(payload) != want {
			t.Errorf("got %s, %v", payload, err)
		}
	}
	if _, err := c.DeliveryPayload(t.Context(), delivery.Missed{ID: 77, DeliveryID: "x"}); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := c.DeliveryPayload(t.Context(), delivery.Missed{ID: 3, DeliveryID: "x"}); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("the payload of another delivery: got %v", err)
	}
	for _, call := range f.callsOf() {
		if !strings.HasPrefix(call, "app ") {
			t.Errorf("not by an App itself: %s", call)
		}
	}
}

func TestMissedDeliveriesAreBounded(t *testing.T) {
	f := newFake()
	apps := f.withApps(1)
	for i := range 4000 {
		f.apps[0].deliveries = append(f.apps[0].deliveries, attempt(9000-i, fmt.Sprint(i), 35, 0))
	}
	c := newClient(t, github.Config{Transport: direct{f}, Apps: apps})
	got, err := c.MissedDeliveries(t.Context(), time.Time{})
	if err != nil || len(got) != 3000 || f.count() != 31 {
		t.Errorf("%d deliveries by %d calls: %v", len(got), f.count(), err)
	}
}

// A look ends however many deliveries have failed.
func TestFailedDeliveriesAreBounded(t *testing.T) {
	f := newFake()
	apps := f.withApps(1)
	for i := range 31_000 {
		f.apps[0].deliveries = append(f.apps[0].deliveries, attempt(90_000-i, fmt.Sprint(i), 35, 503))
	}
	c := newClient(t, github.Config{Transport: direct{f}, Apps: apps})
	got, err := c.MissedDeliveries(t.Context(), time.Time{})
	if err != nil || len(got) != 30_000 || f.count() != 300+30 {
		t.Errorf("%d deliveries by %d calls: %v", len(got), f.count(), err)
	}
}

// Of a busy App there are more deliveries of a few minutes than a look reads. The failed ones are found behind them
// and however many they are, where the server lists them alone.
func TestFailedDeliveriesBehindMany(t *testing.T) {
	for name, c := range map[string]struct {
		ignoresStatus bool
		missed, calls int
	}{
		"GitHub":                   {false, 350, 4 + 30},
		"an old Enterprise Server": {true, 0, 1 + 30},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			apps := f.withApps(1)
			app := f.apps[0]
			app.ignoresStatus = c.ignoresStatus
			for i := range 4000 {
				app.deliveries = append(app.deliveries, attempt(9000-i, fmt.Sprint("fine ", i), 35, 202))
			}
			for i := range 350 {
				app.deliveries = append(app.deliveries, attempt(4000-i, fmt.Sprint("failed ", i), 31, 503))
			}
			app.deliveries = append(app.deliveries, attempt(1, "too old", 20, 503))
			client := newClient(t, github.Config{Transport: direct{f}, Apps: apps})
			got, err := client.MissedDeliveries(t.Context(), time.Date(2026, 1, 2, 3, 30, 0, 0, time.UTC))
			if err != nil || len(got) != c.missed || f.count() != c.calls {
				t.Errorf("%d deliveries by %d calls, want %d by %d: %v", len(got), f.count(), c.missed, c.calls, err)
			}
		})
	}
}

func TestNoDeliveriesToBeAskedFor(t *testing.T) {
	f := newFake()
	for name, c := range map[string]*github.Client{
		"token":             newClient(t, github.Config{Transport: direct{f}}),
		"App without hooks": newClient(t, github.Config{Transport: direct{f}, Apps: f.withApps(1)}),
	} {
		if _, err := c.MissedDeliveries(t.Context(), time.Time{}); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := c.DeliveryPayload(t.Context(), delivery.Missed{ID: 1}); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// When one App cannot be asked, what was missed is not known.
func TestMissedDeliveriesOfAnAppThatIsDown(t *testing.T) {
	f := newFake()
	apps := f.withApps(2)
	f.apps[0].deliveries = []map[string]any{attempt(1, "a", 35, 500)}
	f.before = func(w http.ResponseWriter, _ *http.Request) bool {
		down := f.by[len(f.by)-1] == "app 2"
		if down {
			w.Header().Set("Retry-After", "5")
			answer(w, http.StatusServiceUnavailable, "")
		}
		return down
	}
	c := newClient(t, github.Config{Transport: direct{f}, Apps: apps})
	if got, err := c.MissedDeliveries(t.Context(), time.Time{}); !errors.Is(err, lifecycle.ErrUnavailable) || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestRunnerReleases(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := newFake("a")
	f.releases = []map[string]any{
		{"tag_name": "v2.318.0", "published_at": at.Add(time.Hour)}, {"tag_name": "v2.318.0-rc", "prerelease": true, "published_at": at},
		{"tag_name": "v3", "draft": true}, {"tag_name": "v2.317.0", "published_at": at},
	}
	want := []github.Release{{Version: "2.318.0", PublishedAt: at.Add(time.Hour)}, {Version: "2.317.0", PublishedAt: at}}
	ask := func(c *github.Client, by string) {
		t.Helper()
		got, err := c.RunnerReleases(t.Context())
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v %s", err, d)
		}
		if calls := f.callsOf(); calls[len(calls)-1] != by+": GET /repos/actions/runner/releases" {
			t.Errorf("got %v, want it by %s", calls, by)
		}
	}
	ask(newClient(t, github.Config{Transport: direct{f}}), "token")
	c := newClient(t, github.Config{Transport: direct{f}, Apps: f.withApps(1)})
	ask(c, "anonymous")
	list(t, c)
	ask(c, "installation 11")
	f.releases = nil
	if _, err := newClient(t, github.Config{Transport: direct{f}}).RunnerReleases(t.Context()); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("a server without the repository: got %v", err)
	}
}

// Whether a repository can be seen at all is asked once for many of its runs that are missing.
func TestMissingRunsShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := newClient(t, github.Config{Transport: slow{direct{f}, 250 * time.Millisecond}})
		var all sync.WaitGroup
		for n := range 300 {
			all.Go(func() {
				if _, err := c.WorkflowRun(t.Context(), "acme/app", fmt.Sprint(1000+n)); !errors.Is(err, lifecycle.ErrNotFound) {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
		if n := f.count(); n > 310 {
			t.Errorf("%d calls for 300 runs that are missing", n)
		}
	})
}
