package github_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestJIT(t *testing.T) {
	for name, test := range map[string]struct {
		config github.Config
		url    string
		group  any
		calls  []string
	}{
		"repository":   {github.Config{}, "http://localhost/acme/app", int64(1), []string{"token: POST /repos/acme/app/actions/runners/generate-jitconfig"}},
		"organisation": {github.Config{Organization: true}, "http://localhost/acme", int64(1), []string{"token: POST /orgs/acme/actions/runners/generate-jitconfig"}},
		"group": {github.Config{Organization: true, RunnerGroup: "Big builders"}, "http://localhost/acme", int64(3), []string{
			"token: GET /orgs/acme/actions/runner-groups", "token: POST /orgs/acme/actions/runners/generate-jitconfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.groups = []string{"other", "Big builders"}
				test.config.Transport = direct{f}
				c := newClient(t, test.config)
				got, id, err := c.JIT(t.Context(), "acme/app", "remuda-1-i-1", []string{"small", "linux"})
				if err != nil {
					t.Fatal(err)
				}
				want := lifecycle.Registration{Kind: lifecycle.RegistrationJIT, URL: test.url, Secret: lifecycle.Secret(jitOf(1, `{"DisableUpdate":"True","Ephemeral":"True"}`)), ExpiresAt: time.Now().Add(time.Hour)}
				if d := cmp.Diff(want, got); d != "" || id != 101 {
					t.Errorf("id %d: %s", id, d)
				}
				if got := f.runners[0]["runner_group_id"]; got != test.group {
					t.Errorf("group %v, want %v", got, test.group)
				}
				if d := cmp.Diff(test.calls, f.callsOf()); d != "" {
					t.Error(d)
				}
				if _, _, err := c.JIT(t.Context(), "acme/app", "remuda-1-i-2", []string{"small"}); err != nil {
					t.Fatal(err)
				}
				if n := f.count(); n != 1 {
					t.Errorf("%d calls for another one, want 1: groups are known for a while", n)
				}
			})
		})
	}
}

// A name whose first answer was lost is taken over, unless a job runs there.
func TestJITTakesOver(t *testing.T) {
	const jit, find, remove = "token: POST /repos/acme/app/actions/runners/generate-jitconfig",
		"token: GET /repos/acme/app/actions/runners", "token: DELETE /repos/acme/app/actions/runners/1"
	for name, test := range map[string]struct {
		before func(f *fake)
		calls  []string
		want   error
	}{
		"idle":  {func(*fake) {}, []string{jit, find, remove, jit}, nil},
		"busy":  {func(f *fake) { f.runners[0]["busy"] = true }, []string{jit, find}, lifecycle.ErrBusy},
		"later": {busyWhenDeleted, []string{jit, find, remove}, lifecycle.ErrBusy},
		"gone":  {goneWhenLookedFor, []string{jit, find, jit}, nil},
		"never free": {func(f *fake) {
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					answer(w, http.StatusConflict, `{"message":"Already exists"}`)
				}
				return r.Method == http.MethodPost
			}
			f.runners = nil
		}, []string{jit, find, jit, find, jit, find, jit}, lifecycle.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("taken")
				test.before(f)
				c := newClient(t, github.Config{Transport: direct{f}})
				r, _, err := c.JIT(t.Context(), "acme/app", "taken", []string{"x"})
				if !errors.Is(err, test.want) || (err == nil) != (r.Secret != "") {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if errors.Is(err, lifecycle.ErrRefused) {
					t.Errorf("refused for good: %v", err)
				}
				if d := cmp.Diff(test.calls, f.callsOf()); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func busyWhenDeleted(f *fake) {
	f.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			f.runners[0]["busy"] = true
		}
		return false
	}
}

func goneWhenLookedFor(f *fake) {
	f.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			f.runners = nil
		}
		return false
	}
}

// An answer that was lost on the way leaves a runner of the name behind, which
// the second try meets.
func TestJITWhoseAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		lost := false
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if lost || r.Method != http.MethodPost {
				return false
			}
			lost = true
			f.runners = append(f.runners, map[string]any{"id": 5, "name": "x", "busy": false})
			answer(w, http.StatusBadGateway, "")
			return true
		}
		c := newClient(t, github.Config{Transport: direct{f}})
		if _, id, err := c.JIT(t.Context(), "acme/app", "x", []string{"l"}); err != nil || id != 101 {
			t.Errorf("got %d, %v", id, err)
		}
		if len(f.runners) != 1 {
			t.Errorf("%d runners are left, want 1", len(f.runners))
		}
	})
}

func TestJITThatIsNone(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"empty":     {201, ``, lifecycle.ErrUnavailable},
		"no runner": {201, `{"encoded_jit_config":"x"}`, lifecycle.ErrUnavailable},
		"no config": {201, `{"runner":{"id":1}}`, lifecycle.ErrUnavailable},
		"not one":   {201, `{"runner":{"id":1},"encoded_jit_config":"s3cret!"}`, lifecycle.ErrRefused},
		"not JSON":  {201, `<html>`, lifecycle.ErrUnavailable},
		"too many":  {422, `{"message":"Invalid Argument - Runner group 1 has reached max limit of 10000 runners."}`, lifecycle.ErrRefused},
		"forbidden": {403, `{"message":"Resource not accessible by integration"}`, lifecycle.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.before = func(w http.ResponseWriter, _ *http.Request) bool { answer(w, test.status, test.body); return true }
				c := newClient(t, github.Config{Transport: direct{f}})
				r, id, err := c.JIT(t.Context(), "acme/app", "x", []string{"l"})
				if !errors.Is(err, test.want) || id != 0 || r.Secret != "" || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("got %v, %d, %v", r, id, err)
				}
			})
		})
	}
}

func TestRunnerGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		for range 150 {
			f.groups = append(f.groups, "other")
		}
		c := newClient(t, github.Config{Transport: direct{f}, Organization: true, RunnerGroup: "last"})
		_, _, err := c.JIT(t.Context(), "acme/app", "x", []string{"l"})
		if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), `find runner group "last" for acme: GitHub answered 404: the organization has no runner group of that name`) {
			t.Errorf("got %v", err)
		}
		f.groups = append(f.groups, "last")
		if _, _, err := c.JIT(t.Context(), "acme/app", "x", []string{"l"}); err != nil || f.runners[0]["runner_group_id"] != int64(152) {
			t.Errorf("got %v, %v", f.runners, err)
		}
		// It is made again with another id: the refusal makes it be looked for.
		f.groups = append([]string{"last"}, f.groups[:10]...)
		if _, _, err := c.JIT(t.Context(), "acme/app", "y", []string{"l"}); !errors.Is(err, lifecycle.ErrRefused) {
			t.Errorf("a group that is gone: got %v", err)
		}
		if _, _, err := c.JIT(t.Context(), "acme/app", "y", []string{"l"}); err != nil || f.runners[1]["runner_group_id"] != int64(2) {
			t.Errorf("got %v, %v", f.runners, err)
		}
	})
	if _, err := github.New(github.Config{URL: "https://api.github.com", Token: github.StaticToken("x"), RunnerGroup: "x"}); err == nil {
		t.Error("a repository's runners were given a group")
	}
}

// At organization scope every operation of a repository's runners is one of its
// organization, which has one token for all.
func TestOrganizationScope(t *testing.T) {
	f := newFake("a", "b")
	c := newClient(t, github.Config{Transport: direct{f}, Organization: true})
	for _, repository := range []string{"acme/app", "acme/other", "Acme/app"} {
		r, err := c.RegistrationToken(t.Context(), repository)
		if err != nil || r.URL != "http://localhost/acme" || r.Secret != "AREG1" {
			t.Errorf("%s: got %v, %v", repository, r, err)
		}
	}
	if r, err := c.RemoveToken(t.Context(), "acme/other"); err != nil || r.URL != "http://localhost/acme" {
		t.Errorf("got %v, %v", r, err)
	}
	if _, err := c.FindRunner(t.Context(), "acme/other", "a"); err != nil {
		t.Error(err)
	}
	if err := c.DeleteRunner(t.Context(), "acme/other", 1); err != nil {
		t.Error(err)
	}
	list(t, c)
	want := []string{
		"token: POST /orgs/acme/actions/runners/registration-token", "token: POST /orgs/acme/actions/runners/remove-token",
		"token: GET /orgs/acme/actions/runners", "token: DELETE /orgs/acme/actions/runners/1", "token: GET /orgs/acme/actions/runners",
	}
	if d := cmp.Diff(want, f.callsOf()); d != "" {
		t.Error(d)
	}
	_, err := c.RegistrationToken(t.Context(), "unknown/app")
	if err == nil || !strings.Contains(err.Error(), "create a registration token for unknown: GitHub answered 404 (Not Found): the organization is unknown") {
		t.Errorf("got %v", err)
	}
}

// Hosts of a run join the group too; a token to leave says nothing of it.
func TestTokensTellTheRunnerGroup(t *testing.T) {
	f := newFake()
	c := newClient(t, github.Config{Transport: direct{f}, Organization: true, RunnerGroup: "Big builders"})
	join, err := c.RegistrationToken(t.Context(), "acme/app")
	if err != nil || join.RunnerGroup != "Big builders" {
		t.Errorf("registration token: %v, group %q", err, join.RunnerGroup)
	}
	leave, err := c.RemoveToken(t.Context(), "acme/app")
	if err != nil || leave.RunnerGroup != "" {
		t.Errorf("remove token: %v, group %q", err, leave.RunnerGroup)
	}
}
