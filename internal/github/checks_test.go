package github_test

import (
	"errors"
	"testing"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
)

// TestCheckRuns: every call is held against GitHub's description.
func TestCheckRuns(t *testing.T) {
	s := startStandin(t)
	install := func(permissions map[string]string) *github.Client {
		s.call(200, "PUT", "/_standin/apps", "", map[string]any{
			"app_id": 7, "private_key": appPEM().Reveal(), "owners": []string{"acme"}, "permissions": permissions}, nil)
		return newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil), Apps: []github.App{{AppID: 7, PrivateKey: appPEM()}}})
	}
	s.call(201, "POST", "/_standin/runs", "", map[string]any{"repository": repository, "run_id": "4711",
		"workflow": "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"}, nil)
	c := install(map[string]string{"actions": "read", "checks": "write"})
	waits := checkrun.Content{Title: "a job waits", Summary: "**full**"}
	id, err := c.CreateCheck(t.Context(), repository, "4711", waits)
	if err != nil || id == 0 {
		t.Fatalf("check run %d, %v", id, err)
	}
	if again, err := c.CreateCheck(t.Context(), repository, "4711", waits); again != id || err != nil {
		t.Errorf("a repeat made check run %d, %v", again, err)
	}
	if err := c.UpdateCheck(t.Context(), repository, id, checkrun.Content{Title: "over", Summary: "over", Conclusion: checkrun.Neutral}); err != nil {
		t.Error(err)
	}
	if next, err := c.CreateCheck(t.Context(), repository, "4711", waits); next == id || err != nil {
		t.Errorf("after its end it is check run %d, %v", next, err)
	}
	for _, run := range []string{"4712", "none", ""} {
		if _, err := c.CreateCheck(t.Context(), repository, run, waits); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("run %q: %v", run, err)
		}
	}
	if err := c.UpdateCheck(t.Context(), repository, 999, waits); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("a check run that is not there: %v", err)
	}
	c = install(map[string]string{"actions": "read"})
	if _, err := c.CreateCheck(t.Context(), repository, "4711", waits); !errors.Is(err, lifecycle.ErrRefused) {
		t.Errorf("without the permission: %v", err)
	}
	token := newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil), Token: github.StaticToken("any")})
	if _, err := token.CreateCheck(t.Context(), repository, "4711", waits); !errors.Is(err, lifecycle.ErrRefused) {
		t.Errorf("with a token: %v", err)
	}
}
