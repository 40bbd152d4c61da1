package githubsim_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v62/github"
)

// clients are go-github's against both places where the API is served.
func (s *standin) clients() map[string]*github.Client {
	s.t.Helper()
	enterprise, err := github.NewClient(s.client).WithAuthToken("test").WithEnterpriseURLs(s.url, s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	root := github.NewClient(s.client).WithAuthToken("test")
	if root.BaseURL, err = root.BaseURL.Parse(s.url + "/"); err != nil {
		s.t.Fatal(err)
	}
	return map[string]*github.Client{"under /api/v3": enterprise, "at the root": root}
}

func statusOf(err error) int {
	var e *github.ErrorResponse
	if errors.As(err, &e) {
		return e.Response.StatusCode
	}
	return 0
}

func jit(name string) *github.GenerateJITConfigRequest {
	return &github.GenerateJITConfigRequest{Name: name, RunnerGroupID: 1, Labels: []string{"4711"}}
}

func TestRunnersOfARepository(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	for place, c := range s.clients() {
		t.Run(place, func(t *testing.T) {
			token, resp, err := c.Actions.CreateRegistrationToken(ctx, "acme", "app")
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != 201 || token.GetToken() == "" || !token.GetExpiresAt().Time.Equal(s.clock.Now().Add(time.Hour)) {
				t.Errorf("registration token: %d, expires %v", resp.StatusCode, token.GetExpiresAt())
			}
			if resp.Rate.Limit == 0 || resp.Rate.Remaining >= resp.Rate.Limit || !resp.Rate.Reset.After(s.clock.Now()) {
				t.Errorf("rate: %+v", resp.Rate)
			}
			request := jit("host-" + strings.Fields(place)[0])
			request.Labels = append(request.Labels, "self-hosted") // it has no label but those it is given
			made, _, err := c.Actions.GenerateRepoJITConfig(ctx, "acme", "app", request)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := c.Actions.GetRunner(ctx, "acme", "app", made.Runner.GetID())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(made.Runner, got); d != "" {
				t.Errorf("runner made and got: %s", d)
			}
			var labels []string
			for _, l := range got.Labels {
				labels = append(labels, l.GetName()+"/"+l.GetType())
			}
			want := []string{"4711/custom", "self-hosted/read-only"}
			if d := cmp.Diff(want, labels); d != "" || got.GetStatus() != "offline" || got.GetBusy() || got.GetOS() != "linux" {
				t.Errorf("runner %+v: %s", got, d)
			}
			if _, err := c.Actions.RemoveRunner(ctx, "acme", "app", got.GetID()); err != nil {
				t.Error(err)
			}
			if _, _, err := c.Actions.GetRunner(ctx, "acme", "app", got.GetID()); statusOf(err) != 404 {
				t.Errorf("get after delete: %v", err)
			}
			if _, err := c.Actions.RemoveRunner(ctx, "acme", "app", got.GetID()); statusOf(err) != 404 {
				t.Errorf("delete after delete: %v", err)
			}
		})
	}
}

func TestRunnersOfAnOrganisation(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	c := s.clients()["at the root"]
	if _, _, err := c.Actions.CreateOrganizationRegistrationToken(ctx, "acme"); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Actions.CreateOrganizationRemoveToken(ctx, "acme"); err != nil {
		t.Error(err)
	}
	made, _, err := c.Actions.GenerateOrgJITConfig(ctx, "acme", jit("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Actions.GetOrganizationRunner(ctx, "acme", made.Runner.GetID()); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Actions.GetOrganizationRunner(ctx, "other", made.Runner.GetID()); statusOf(err) != 404 {
		t.Errorf("from another organisation: %v", err)
	}
	if _, _, err := c.Actions.GetRunner(ctx, "acme", "app", made.Runner.GetID()); statusOf(err) != 404 {
		t.Errorf("from a repository: %v", err)
	}
	if _, err := c.Actions.RemoveOrganizationRunner(ctx, "acme", made.Runner.GetID()); err != nil {
		t.Error(err)
	}
}

func TestListRunnersPaginates(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	c := s.clients()["under /api/v3"]
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("host-%d", i)
		want = append(want, name)
		if _, _, err := c.Actions.GenerateRepoJITConfig(ctx, "acme", "app", jit(name)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	pages := 0
	opts := &github.ListRunnersOptions{ListOptions: github.ListOptions{PerPage: 3}}
	for {
		list, resp, err := c.Actions.ListRunners(ctx, "acme", "app", opts)
		if err != nil {
			t.Fatal(err)
		}
		if list.TotalCount != 7 {
			t.Errorf("total %d", list.TotalCount)
		}
		for _, r := range list.Runners {
			got = append(got, r.GetName())
		}
		if pages++; pages == 1 && resp.LastPage != 3 {
			t.Errorf("last page %d", resp.LastPage)
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	if d := cmp.Diff(want, got); d != "" || pages != 3 {
		t.Errorf("%d pages: %s", pages, d)
	}
	one, _, err := c.Actions.ListRunners(ctx, "acme", "app", &github.ListRunnersOptions{Name: github.String("host-4")})
	if err != nil || len(one.Runners) != 1 || one.Runners[0].GetName() != "host-4" {
		t.Errorf("by name: %v, %v", one, err)
	}
}

func TestJITConfigIsRefused(t *testing.T) {
	s := start(t)
	c := s.clients()["at the root"]
	ctx := context.Background()
	if _, _, err := c.Actions.GenerateRepoJITConfig(ctx, "acme", "app", jit("taken")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		req  *github.GenerateJITConfigRequest
		want int
	}{
		"name taken":    {jit("taken"), 409},
		"no name":       {jit(""), 422},
		"no labels":     {&github.GenerateJITConfigRequest{Name: "b", RunnerGroupID: 1}, 422},
		"unknown group": {&github.GenerateJITConfigRequest{Name: "b", RunnerGroupID: 7, Labels: []string{"x"}}, 404},
	} {
		if _, _, err := c.Actions.GenerateRepoJITConfig(ctx, "acme", "app", tc.req); statusOf(err) != tc.want {
			t.Errorf("%s: %v, want %d", name, err, tc.want)
		}
	}
}

func TestLabelsOfARunner(t *testing.T) {
	s := start(t)
	made, _, err := s.clients()["at the root"].Actions.GenerateRepoJITConfig(context.Background(), "acme", "app",
		&github.GenerateJITConfigRequest{Name: "a", RunnerGroupID: 1, Labels: []string{"self-hosted", "Linux", "X64", "one", "two", "three"}})
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/api/v3/repos/acme/app/actions/runners/%d/labels", made.Runner.GetID())
	names := func(method, path string) (out []string) {
		var got struct {
			TotalCount int `json:"total_count"`
			Labels     []struct{ Name string }
		}
		s.call(200, method, path, nil, &got)
		for _, l := range got.Labels {
			out = append(out, l.Name)
		}
		if got.TotalCount != len(out) {
			t.Errorf("total %d of %v", got.TotalCount, out)
		}
		return out
	}
	if d := cmp.Diff([]string{"self-hosted", "Linux", "X64", "one", "two", "three"}, names("GET", path)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"self-hosted", "Linux", "X64", "one", "three"}, names("DELETE", path+"/two")); d != "" {
		t.Error(d)
	}
	put := func(want int, method string, labels []string) {
		t.Helper()
		s.call(want, method, path, map[string]any{"labels": labels}, nil)
	}
	put(200, "POST", []string{"One", "four"})
	if d := cmp.Diff([]string{"self-hosted", "Linux", "X64", "one", "three", "four"}, names("GET", path)); d != "" {
		t.Errorf("added: %s", d)
	}
	put(200, "PUT", []string{"run-7", "LINUX"})
	if d := cmp.Diff([]string{"self-hosted", "Linux", "X64", "run-7"}, names("GET", path)); d != "" {
		t.Errorf("set: %s", d)
	}
	put(422, "PUT", []string{""})
	put(422, "POST", []string{})
	put(422, "PUT", slices.Repeat([]string{"x"}, 101))
	s.call(404, "PUT", strings.Replace(path, "/1/", "/77/", 1), map[string]any{"labels": []string{"x"}}, nil)
	s.call(404, "DELETE", path+"/two", nil, nil)
	s.call(422, "DELETE", path+"/linux", nil, nil)
	if d := cmp.Diff([]string{"self-hosted", "Linux", "X64"}, names("DELETE", path)); d != "" {
		t.Error(d)
	}
}

func TestErrorsHaveGitHubsShape(t *testing.T) {
	s := start(t)
	for name, tc := range map[string]struct {
		header http.Header
		method string
		path   string
		want   map[string]any
	}{
		"no authorization": {http.Header{}, "GET", "/api/v3/orgs/acme/actions/runners", map[string]any{"message": "Requires authentication", "status": "401"}},
		"unknown path":     {http.Header{"Authorization": {"token x"}}, "GET", "/repos/acme/app/nothing", map[string]any{"message": "Not Found", "status": "404"}},
		"unknown runner":   {http.Header{"Authorization": {"token x"}}, "DELETE", "/orgs/acme/actions/runners/9", map[string]any{"message": "Not Found", "status": "404"}},
		"no such id":       {http.Header{"Authorization": {"token x"}}, "GET", "/orgs/acme/actions/runners/x", map[string]any{"message": "Not Found", "status": "404"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got map[string]any
			var status int
			fmt.Sscan(tc.want["status"].(string), &status)
			s.callWith(tc.header, status, tc.method, tc.path, nil, &got)
			tc.want["documentation_url"] = "https://docs.github.com/rest"
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRateLimit(t *testing.T) {
	s := start(t)
	s.stop()
	s.opts.RateLimit = 3
	s.up()
	c := s.clients()["at the root"]
	for range 3 {
		if _, _, err := c.Actions.ListRunners(context.Background(), "acme", "app", nil); err != nil {
			t.Fatal(err)
		}
	}
	s.call(403, "GET", "/orgs/acme/actions/runners", nil, nil)
	s.clock.advance(time.Hour)
	s.call(200, "GET", "/orgs/acme/actions/runners", nil, nil)
}

func TestRunsThroughTheAPI(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	c := s.clients()["under /api/v3"]
	s.online("a", "box")
	id := s.startRun("on: push\nname: sums\njobs:\n  good: {runs-on: box, steps: [{run: 'true', name: one}]}\n  bad: {runs-on: box, steps: [{run: exit 3}]}\n  late: {needs: bad, runs-on: box, steps: [{run: 'true'}]}\n")
	s.completed(id)
	run, _, err := c.Actions.GetWorkflowRunByID(ctx, "acme", "app", id)
	if err != nil {
		t.Fatal(err)
	}
	if run.GetName() != "sums" || run.GetStatus() != "completed" || run.GetConclusion() != "failure" || run.GetRunAttempt() != 1 ||
		run.GetRepository().GetFullName() != "acme/app" || run.GetEvent() != "workflow_dispatch" || run.GetHeadSHA() == "" || run.GetCreatedAt().IsZero() {
		t.Errorf("run: %+v", run)
	}
	if _, _, err := c.Actions.GetWorkflowRunByID(ctx, "acme", "other", id); statusOf(err) != 404 {
		t.Errorf("run of another repository: %v", err)
	}
	jobs, _, err := c.Actions.ListWorkflowJobs(ctx, "acme", "app", id, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, j := range jobs.Jobs {
		got[j.GetName()] = j.GetConclusion()
	}
	if d := cmp.Diff(map[string]string{"good": "success", "bad": "failure", "late": "skipped"}, got); d != "" {
		t.Error(d)
	}
	good := jobs.Jobs[0]
	var steps []string
	for _, st := range good.Steps {
		steps = append(steps, fmt.Sprint(st.GetNumber(), " ", st.GetName(), " ", st.GetConclusion()))
	}
	if d := cmp.Diff([]string{"1 Set up job success", "2 one success", "3 Complete job success"}, steps); d != "" || good.GetRunnerName() != "a" || good.GetRunID() != id {
		t.Errorf("job %+v: %s", good, d)
	}
	if _, err := c.Actions.CancelWorkflowRunByID(ctx, "acme", "app", id); statusOf(err) != 409 {
		t.Errorf("cancel of a completed run: %v", err)
	}
	if _, err := c.Actions.RerunFailedJobsByID(ctx, "acme", "app", id); err != nil {
		t.Fatal(err)
	}
	s.completed(id)
	if _, err := c.Actions.RerunWorkflowByID(ctx, "acme", "app", id); err != nil {
		t.Fatal(err)
	}
	if v := s.completed(id); v.RunAttempt != 3 {
		t.Errorf("attempt %d", v.RunAttempt)
	}
	all, _, err := c.Actions.ListWorkflowJobs(ctx, "acme", "app", id, &github.ListWorkflowJobsOptions{Filter: "all"})
	if err != nil || all.GetTotalCount() != 3+2+3 {
		t.Errorf("jobs of all attempts: %d, %v", all.GetTotalCount(), err)
	}
}

func TestCancelThroughTheAPI(t *testing.T) {
	s := start(t)
	c := s.clients()["at the root"]
	id := s.startRun("on: push\njobs:\n  j: {runs-on: nowhere, steps: [{run: 'true'}]}\n")
	// GitHub answers 202, which go-github reports as an error of its own.
	_, err := c.Actions.CancelWorkflowRunByID(context.Background(), "acme", "app", id)
	var accepted *github.AcceptedError
	if !errors.As(err, &accepted) {
		t.Fatalf("cancel: %v", err)
	}
	if v := s.completed(id); v.Jobs[0].conclusion() != "cancelled" || *v.Conclusion != "cancelled" {
		t.Errorf("%+v", v)
	}
}
