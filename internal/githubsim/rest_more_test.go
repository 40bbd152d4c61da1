package githubsim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

func TestJITAtAnOrganisation(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	c := s.clientWith("test")
	s.call(204, "PUT", "/_standin/runner-groups", map[string]any{"groups": []map[string]any{{"id": 7, "name": "spot"}}}, nil)
	groups, _, err := c.Actions.ListOrganizationRunnerGroups(ctx, "acme", nil)
	if err != nil || groups.TotalCount != 2 || groups.RunnerGroups[0].GetName() != "Default" || groups.RunnerGroups[1].GetName() != "spot" {
		t.Fatalf("groups: %v, %v", groups, err)
	}
	req := jit("a")
	req.RunnerGroupID = 7
	made, _, err := c.Actions.GenerateOrgJITConfig(ctx, "acme", req)
	if err != nil || made.GetEncodedJITConfig() == "" {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*github.GenerateJITConfigRequest)
		want   int
	}{
		"the name is taken": {func(*github.GenerateJITConfigRequest) {}, 409},
		"no such group":     {func(q *github.GenerateJITConfigRequest) { q.Name, q.RunnerGroupID = "b", 8 }, 404},
		"an empty label":    {func(q *github.GenerateJITConfigRequest) { q.Name, q.Labels = "b", []string{""} }, 422},
		"a long label":      {func(q *github.GenerateJITConfigRequest) { q.Name, q.Labels = "b", []string{strings.Repeat("x", 257)} }, 422},
		"many labels":       {func(q *github.GenerateJITConfigRequest) { q.Name, q.Labels = "b", make([]string, 101) }, 422},
		"a long name":       {func(q *github.GenerateJITConfigRequest) { q.Name = strings.Repeat("n", 65) }, 422},
	} {
		q := jit("a")
		tc.change(q)
		if _, _, err := c.Actions.GenerateOrgJITConfig(ctx, "acme", q); statusOf(err) != tc.want {
			t.Errorf("%s: %v, want %d", name, err, tc.want)
		}
	}
	if _, _, err := c.Actions.GenerateRepoJITConfig(ctx, "acme", "app", req); statusOf(err) != 404 {
		t.Errorf("a group in a repository: %v", err)
	}
	s.stop()
	s.up()
	if got, _, err := c.Actions.ListOrganizationRunnerGroups(ctx, "acme", nil); err != nil || got.TotalCount != 2 {
		t.Errorf("groups after a restart: %v, %v", got, err)
	}
	for _, g := range []map[string]any{{"id": 1, "name": "x"}, {"id": 2}} {
		s.call(422, "PUT", "/_standin/runner-groups", map[string]any{"groups": []any{g}}, nil)
	}
}

func TestBusyRunnerIsNotDeleted(t *testing.T) {
	s := start(t)
	p := s.newPuppet("a")
	s.startRun(oneJob)
	p.poll()
	path := fmt.Sprintf("/repos/acme/app/actions/runners/%d", s.runners()[0].ID)
	var got struct{ Message string }
	s.call(422, "DELETE", path, nil, &got)
	if !strings.Contains(got.Message, "still running a job") {
		t.Errorf("%q", got.Message)
	}
}

func TestNotModifiedIsFree(t *testing.T) {
	s := start(t)
	path := "/api/v3/repos/acme/app/actions/runners?per_page=5"
	first := s.call(200, "GET", path, nil, nil)
	tag := first.Get("ETag")
	if !strings.HasPrefix(tag, `W/"`) {
		t.Fatalf("ETag %q", tag)
	}
	again := http.Header{"Authorization": {"Bearer test"}, "If-None-Match": {`"x", ` + tag}}
	second := s.callWith(again, 304, "GET", path, nil, nil)
	if a, b := first.Get("X-RateLimit-Remaining"), second.Get("X-RateLimit-Remaining"); a != b {
		t.Errorf("it cost a call: %s, %s", a, b)
	}
	s.newPuppet("a")
	third := s.callWith(again, 200, "GET", path, nil, nil)
	if third.Get("ETag") == tag || third.Get("X-RateLimit-Remaining") >= first.Get("X-RateLimit-Remaining") {
		t.Errorf("after a change: %v", third)
	}
}

func TestEachCredentialHasItsBudget(t *testing.T) {
	s := start(t)
	s.stop()
	s.opts.RateLimit = 2
	s.up()
	as := func(token string, want int) http.Header {
		t.Helper()
		return s.callWith(http.Header{"Authorization": {"Bearer " + token}}, want, "GET", "/orgs/acme/actions/runners", nil, nil)
	}
	as("one", 200)
	as("one", 200)
	h := as("one", 403)
	if h.Get("X-RateLimit-Remaining") != "0" || h.Get("X-RateLimit-Used") != "2" || h.Get("X-RateLimit-Resource") != "core" {
		t.Errorf("used up: %v", h)
	}
	if h := as("two", 200); h.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("another: %v", h)
	}
	_, _, err := s.clientWith("one").Actions.ListRunners(context.Background(), "acme", "app", nil)
	if _, limited := err.(*github.RateLimitError); !limited {
		t.Errorf("to a client it is %T: %v", err, err)
	}
}

// Registrations have a limit beside that of other calls, and neither uses up the other.
func TestRegistrationsHaveALimitOfTheirOwn(t *testing.T) {
	s := start(t)
	s.stop()
	s.opts.RateLimit, s.opts.RegistrationLimit = 3, 2
	s.up()
	jit := func(name string, want int, left string) {
		t.Helper()
		request := map[string]any{"name": name, "runner_group_id": 1, "labels": []string{"x"}}
		h := s.call(want, "POST", "/repos/acme/app/actions/runners/generate-jitconfig", request, nil)
		if h.Get("X-RateLimit-Resource") != "actions_runner_registration" || h.Get("X-RateLimit-Limit") != "2" || h.Get("X-RateLimit-Remaining") != left {
			t.Errorf("runner %s: %v", name, h)
		}
	}
	jit("a", 201, "1")
	jit("b", 201, "0")
	jit("c", 403, "0")
	h := s.call(201, "POST", "/repos/acme/app/actions/runners/registration-token", nil, nil)
	if h.Get("X-RateLimit-Resource") != "core" || h.Get("X-RateLimit-Remaining") != "2" {
		t.Errorf("a registration token: %v", h)
	}
	s.clock.advance(time.Hour)
	jit("c", 201, "1")
}

func TestSecondaryRateLimit(t *testing.T) {
	s := start(t)
	fail := func(body map[string]any) error {
		s.call(204, "POST", "/_standin/faults", body, nil)
		_, _, err := s.clientWith("test").Actions.ListRunners(context.Background(), "acme", "app", nil)
		return err
	}
	for _, status := range []int{403, 429} {
		err := fail(map[string]any{"route": "*", "status": status, "retry_after": 70})
		limit, ok := err.(*github.AbuseRateLimitError)
		if status == 403 && (!ok || limit.GetRetryAfter() != 70*time.Second) {
			t.Errorf("%d: %T %v", status, err, err)
		}
		if status == 429 && statusOf(err) != 429 && !ok {
			t.Errorf("%d: %T %v", status, err, err)
		}
	}
	s.call(422, "POST", "/_standin/faults", map[string]any{"route": "*", "status": 503, "retry_after": -1}, nil)
}

func TestFaultsOfEveryRouteAreGitHubsAlone(t *testing.T) {
	s := start(t)
	s.call(204, "POST", "/_standin/faults", map[string]any{"route": "*", "status": 500, "count": 100}, nil)
	s.call(500, "GET", "/repos/acme/app/actions/runs", nil, nil)
	s.call(500, "GET", "/app", nil, nil)
	s.call(200, "GET", "/_standin/runners", nil, nil)
	s.startRun(oneJob)
	s.call(204, "DELETE", "/_standin/faults", nil, nil)
	s.call(200, "GET", "/repos/acme/app/actions/runs", nil, nil)
}

func TestRunsAreListed(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	c := s.clientWith("test")
	p := s.newPuppet("a")
	done := s.startRunFrom(map[string]any{"event": "push", "head_branch": "topic"})
	var job protocol.Job
	m := p.poll()
	s.callWith(p.auth, 200, "POST", fmt.Sprintf(protocol.PathAcquire, m.JobID), nil, &job)
	s.callWith(http.Header{"Authorization": {"Bearer " + job.Token}}, 204, "POST", fmt.Sprintf(protocol.PathComplete, m.JobID), protocol.Complete{Conclusion: "success"}, nil)
	s.call(204, "DELETE", fmt.Sprintf("/repos/acme/app/actions/runners/%d", s.runners()[0].ID), nil, nil)
	s.clock.advance(time.Second)
	waiting := s.startRun(oneJob)
	list := func(opts *github.ListWorkflowRunsOptions) []int64 {
		t.Helper()
		got, _, err := c.Actions.ListRepositoryWorkflowRuns(ctx, "acme", "app", opts)
		if err != nil {
			t.Fatal(err)
		}
		var ids []int64
		for _, r := range got.WorkflowRuns {
			ids = append(ids, r.GetID())
		}
		if got.GetTotalCount() < len(ids) {
			t.Errorf("total %d of %v", got.GetTotalCount(), ids)
		}
		return ids
	}
	for name, tc := range map[string]struct {
		opts github.ListWorkflowRunsOptions
		want []int64
	}{
		"all":        {github.ListWorkflowRunsOptions{}, []int64{waiting, done}},
		"queued":     {github.ListWorkflowRunsOptions{Status: "queued"}, []int64{waiting}},
		"completed":  {github.ListWorkflowRunsOptions{Status: "completed"}, []int64{done}},
		"success":    {github.ListWorkflowRunsOptions{Status: "success"}, []int64{done}},
		"failure":    {github.ListWorkflowRunsOptions{Status: "failure"}, nil},
		"of a push":  {github.ListWorkflowRunsOptions{Event: "push"}, []int64{done}},
		"of topic":   {github.ListWorkflowRunsOptions{Branch: "topic"}, []int64{done}},
		"first page": {github.ListWorkflowRunsOptions{ListOptions: github.ListOptions{PerPage: 1}}, []int64{waiting}},
	} {
		if d := cmp.Diff(tc.want, list(&tc.opts)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	s.call(422, "GET", "/repos/acme/app/actions/runs?created=2026-01-01", nil, nil)
	one, _, err := c.Actions.GetWorkflowJobByID(ctx, "acme", "app", m.JobID)
	if err != nil || one.GetRunID() != done || one.GetConclusion() != "success" {
		t.Errorf("job: %v, %v", one, err)
	}
	if _, _, err := c.Actions.GetWorkflowJobByID(ctx, "acme", "other", m.JobID); statusOf(err) != 404 {
		t.Errorf("job of another repository: %v", err)
	}
}

func TestAttemptsOfARun(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	c := s.clientWith("test")
	id := s.startRun("on: push\njobs:\n  a: {runs-on: x, steps: [{run: 'true'}]}\n  b: {needs: a, runs-on: x, steps: [{run: 'true'}]}\n")
	s.call(202, "POST", fmt.Sprintf("/_standin/runs/%d/cancel", id), nil, nil)
	s.call(201, "POST", fmt.Sprintf("/_standin/runs/%d/rerun", id), nil, nil)
	for attempt, want := range map[int]string{1: "completed cancelled", 2: "queued "} {
		run, _, err := c.Actions.GetWorkflowRunAttempt(ctx, "acme", "app", id, attempt, nil)
		if err != nil || run.GetStatus()+" "+run.GetConclusion() != want || run.GetRunAttempt() != attempt {
			t.Errorf("attempt %d: %v, %v", attempt, run, err)
		}
		jobs, _, err := c.Actions.ListWorkflowJobsAttempt(ctx, "acme", "app", id, int64(attempt), nil)
		if err != nil || jobs.GetTotalCount() != 3-attempt { // of the second attempt b still waits for a
			t.Errorf("jobs of attempt %d: %v, %v", attempt, jobs, err)
		}
	}
	for _, attempt := range []int{0, 3} {
		if _, _, err := c.Actions.GetWorkflowRunAttempt(ctx, "acme", "app", id, attempt, nil); statusOf(err) != 404 {
			t.Errorf("attempt %d: %v", attempt, err)
		}
	}
}

func TestReleasesOfTheRunner(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	c := s.clientWith("test")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.call(204, "PUT", "/_standin/releases", map[string]any{"releases": []map[string]any{
		{"tag_name": "v9.2.0", "published_at": at}, {"tag_name": "v9.1.0", "published_at": at.AddDate(0, -1, 0)},
	}}, nil)
	latest, _, err := c.Repositories.GetLatestRelease(ctx, "actions", "runner")
	if err != nil || latest.GetTagName() != "v9.2.0" || !latest.GetPublishedAt().Time.Equal(at) {
		t.Errorf("%v, %v", latest, err)
	}
	page, resp, err := c.Repositories.ListReleases(ctx, "actions", "runner", &github.ListOptions{PerPage: 1, Page: 2})
	if err != nil || len(page) != 1 || page[0].GetTagName() != "v9.1.0" || resp.PrevPage != 1 || resp.NextPage != 0 {
		t.Errorf("%v, %v, %v", page, resp, err)
	}
	if _, _, err := c.Repositories.GetLatestRelease(ctx, "acme", "app"); statusOf(err) != 404 {
		t.Errorf("another repository: %v", err)
	}
	s.call(422, "PUT", "/_standin/releases", map[string]any{"releases": []map[string]any{{"tag_name": "v1"}}}, nil)
}

func TestPagesAreLinkedBothWays(t *testing.T) {
	s := start(t)
	c := s.clientWith("test")
	for i := range 5 {
		if _, _, err := c.Actions.GenerateRepoJITConfig(context.Background(), "acme", "app", jit(fmt.Sprint("host-", i))); err != nil {
			t.Fatal(err)
		}
	}
	for page, want := range map[int][4]int{1: {0, 0, 2, 3}, 2: {1, 1, 3, 3}, 3: {1, 2, 0, 0}} {
		_, resp, err := c.Actions.ListRunners(context.Background(), "acme", "app", &github.ListRunnersOptions{ListOptions: github.ListOptions{Page: page, PerPage: 2}})
		if got := [4]int{resp.FirstPage, resp.PrevPage, resp.NextPage, resp.LastPage}; err != nil || got != want {
			t.Errorf("page %d: first, prev, next, last %v, want %v: %v", page, got, want, err)
		}
	}
	all, _, err := c.Actions.ListRunners(context.Background(), "acme", "app", &github.ListRunnersOptions{ListOptions: github.ListOptions{PerPage: 1000}})
	if err != nil || len(all.Runners) != 5 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestRunsOfATime: a range has both its ends.
func TestRunsOfATime(t *testing.T) {
	s := start(t)
	const one = "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"
	for range 3 {
		s.startRun(one)
		s.clock.advance(time.Minute)
	}
	for created, want := range map[string]int{
		"2026-01-01T12:00:00Z..2026-01-01T12:02:00Z": 3, "2026-01-01T12:00:01Z..2026-01-01T12:01:59Z": 1, "2026-01-01T12:01:00Z..2026-01-01T12:01:00Z": 1,
		"%3E=2026-01-01T12:01:00Z": 2, "2026-01-02T00:00:00Z..2026-01-03T00:00:00Z": 0,
	} {
		var got struct {
			TotalCount int `json:"total_count"`
		}
		if s.plain("/repos/acme/app/actions/runs?created="+created, &got); got.TotalCount != want {
			t.Errorf("%s: %d runs, want %d", created, got.TotalCount, want)
		}
	}
	for _, created := range []string{"2026-01-01", "<2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z..*"} {
		s.call(422, "GET", "/repos/acme/app/actions/runs?created="+url.QueryEscape(created), nil, nil)
	}
}

// TestManyRunsOfAQuery: a query has the thousand newest runs, and a list without one has all.
func TestManyRunsOfAQuery(t *testing.T) {
	s := start(t)
	for range state.MaxFound + 1 {
		s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n")
	}
	for query, want := range map[string]int{"": state.MaxFound + 1, "status=queued": state.MaxFound, "status=queued&page=11&per_page=100": state.MaxFound} {
		var got struct {
			TotalCount int   `json:"total_count"`
			Runs       []any `json:"workflow_runs"`
		}
		s.call(200, "GET", "/repos/acme/app/actions/runs?"+query, nil, &got)
		if beyond := strings.Contains(query, "page=11"); got.TotalCount != want || beyond && len(got.Runs) > 0 {
			t.Errorf("%q: %d runs, want %d, and %d of them on the page", query, got.TotalCount, want, len(got.Runs))
		}
	}
}

// plain makes a call that is not held against GitHub's description, by which created is one time; its documentation has ranges there.
func (s *standin) plain(path string, into any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: %s, %v", path, resp.Status, err)
	}
}
