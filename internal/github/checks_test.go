package github_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
)

// TestCheckRuns: every call is held against GitHub's description.
func TestCheckRuns(t *testing.T) {
	s := startStandin(t)
	install := func(permissions map[string]string, ids ...int64) *github.Client {
		var apps []github.App
		for _, id := range ids {
			s.call(200, "PUT", "/_standin/apps", "", map[string]any{
				"app_id": id, "private_key": appPEM().Reveal(), "owners": []string{"acme"}, "permissions": permissions}, nil)
			apps = append(apps, github.App{AppID: id, PrivateKey: appPEM()})
		}
		return newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil), Apps: apps})
	}
	for _, run := range []string{"4711", "4712"} { // of one commit
		s.call(201, "POST", "/_standin/runs", "", map[string]any{"repository": repository, "run_id": run,
			"workflow": "name: CI\non: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"}, nil)
	}
	ctx := t.Context()
	// With several Apps the one that made a check run changes it, whatever is left to each.
	c := install(map[string]string{"actions": "read", "checks": "write"}, 7, 8)
	head, err := c.RunHead(ctx, repository, "4711")
	if err != nil || head.SHA == "" || head.Workflow != "CI" {
		t.Fatalf("head %+v, %v", head, err)
	}
	waits := checkrun.Content{Title: "a job waits", Summary: "**full**"}
	if _, err := c.FindCheck(ctx, repository, "4711", head, checkrun.Waits); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("before the first: %v", err)
	}
	made := map[string]int64{}
	for _, run := range []string{"4711", "4712"} {
		for _, p := range []checkrun.Purpose{checkrun.Waits, checkrun.Refusal} {
			id, err := c.CreateCheck(ctx, repository, run, head, p, waits)
			if err != nil || id == 0 {
				t.Fatalf("check run %d, %v", id, err)
			}
			made[run+string(p)] = id
		}
	}
	for range 3 {
		for _, run := range []string{"4711", "4712"} {
			for _, p := range []checkrun.Purpose{checkrun.Waits, checkrun.Refusal} {
				found, err := c.FindCheck(ctx, repository, run, head, p)
				if err != nil || found.ID != made[run+string(p)] || !found.Open {
					t.Errorf("of run %s: found %+v, want %d: %v", run, found, made[run+string(p)], err)
				}
				if err := c.UpdateCheck(ctx, repository, found.ID, waits); err != nil {
					t.Error(err)
				}
			}
		}
	}
	id := made["4711wait"]
	if err := c.UpdateCheck(ctx, repository, id, checkrun.Content{Title: "over", Summary: "over", Conclusion: checkrun.Neutral}); err != nil {
		t.Error(err)
	}
	if found, err := c.FindCheck(ctx, repository, "4711", head, checkrun.Waits); err != nil || found.ID != id || found.Open {
		t.Errorf("after its end: %+v, %v", found, err)
	}
	for _, run := range []string{"4713", "none", ""} {
		if _, err := c.RunHead(ctx, repository, run); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("run %q: %v", run, err)
		}
	}
	if err := c.UpdateCheck(ctx, repository, 999, waits); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("a check run that is not there: %v", err)
	}
	other := install(map[string]string{"actions": "read", "checks": "write"}, 8)
	if _, err := other.FindCheck(ctx, repository, "4711", head, checkrun.Waits); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("another App's: %v", err)
	}
	if err := other.UpdateCheck(ctx, repository, id, waits); !errors.Is(err, lifecycle.ErrRefused) {
		t.Errorf("another App's: %v", err)
	}
	if _, err := install(map[string]string{"actions": "read"}, 9).CreateCheck(ctx, repository, "4711", head, checkrun.Waits, waits); !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), "checks: write") {
		t.Errorf("without the permission: %v", err)
	}
	token := newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil), Token: github.StaticToken("any")})
	if _, err := token.CreateCheck(ctx, repository, "4711", head, checkrun.Waits, waits); !errors.Is(err, lifecycle.ErrRefused) {
		t.Errorf("with a token: %v", err)
	}
}
