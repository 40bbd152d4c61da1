package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestFindRunner(t *testing.T) {
	names := make([]string, 0, 150)
	for i := range 150 {
		names = append(names, fmt.Sprintf("remuda-1-i-%d", i))
	}
	for _, unfiltered := range []bool{false, true} {
		t.Run(fmt.Sprintf("unfiltered=%t", unfiltered), func(t *testing.T) {
			f := newFake(names...)
			f.unfiltered = unfiltered
			c := serve(t, f)
			got, err := c.FindRunner(t.Context(), "acme/app", "remuda-1-i-149")
			if err != nil {
				t.Fatal(err)
			}
			want := lifecycle.Runner{ID: 150, Name: "remuda-1-i-149", Online: true, Busy: true}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if _, err := c.FindRunner(t.Context(), "acme/app", "remuda-1-i"); !errors.Is(err, lifecycle.ErrNotFound) {
				t.Errorf("a name that only begins alike: got %v", err)
			}
		})
	}
}

// A repository that is not visible says nothing about its runners.
func TestFindRunnerOfAnUnknownRepository(t *testing.T) {
	_, err := serve(t, newFake()).FindRunner(t.Context(), "acme/other", "x")
	if err == nil || errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestRunnersPages(t *testing.T) {
	c := serve(t, newFake("a", "b", "c", "d", "e"))
	var got []string
	page := lifecycle.PageOf{Limit: 2}
	for pages := 1; ; pages++ {
		p, err := c.Runners(t.Context(), "acme/app", page)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Items {
			got = append(got, fmt.Sprintf("%d %s %t %t", r.ID, r.Name, r.Online, r.Busy))
		}
		if page.After = p.Next; p.Next == "" {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
	}
	want := []string{"1 a true false", "2 b true true", "3 c true false", "4 d true true", "5 e true false"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, token := range []string{"x", "0", "-3"} {
		if _, err := c.Runners(t.Context(), "acme/app", lifecycle.PageOf{After: token}); err == nil {
			t.Errorf("page token %q was taken", token)
		}
	}
}

func TestRunnersAskForNoMoreThanGitHubGives(t *testing.T) {
	f := newFake("a")
	f.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if got := r.URL.Query().Get("per_page"); got != "100" {
			t.Errorf("per_page=%s", got)
		}
		return false
	}
	if _, err := serve(t, f).Runners(t.Context(), "acme/app", lifecycle.PageOf{Limit: 1000}); err != nil {
		t.Fatal(err)
	}
}

// A page that leads back to itself must not be read for ever.
func TestRunnersStopAtALoop(t *testing.T) {
	f := newFake("a")
	f.before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Link", `<http://localhost/?page=1>; rel="next"`)
		return false
	}
	c := serve(t, f)
	if _, err := c.FindRunner(t.Context(), "acme/app", "none"); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestRunnerByID(t *testing.T) {
	f := newFake("free", "busy")
	c := serve(t, f)
	got, err := c.Runner(t.Context(), "acme/app", 2)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(lifecycle.Runner{ID: 2, Name: "busy", Online: true, Busy: true}, got); d != "" {
		t.Error(d)
	}
	if _, err := c.Runner(t.Context(), "acme/app", 3); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("one that is gone: got %v", err)
	}
	if _, err := c.Runner(t.Context(), "acme", 2); err == nil || errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("no repository: got %v", err)
	}
	f.before = func(w http.ResponseWriter, _ *http.Request) bool {
		answer(w, http.StatusOK, `{"id":7,"name":"another"}`)
		return true
	}
	if _, err := c.Runner(t.Context(), "acme/app", 2); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("an answer about another one: got %v", err)
	}
	f.before = func(w http.ResponseWriter, _ *http.Request) bool {
		answer(w, http.StatusBadGateway, `{}`)
		return true
	}
	if _, err := c.Runner(t.Context(), "acme/app", 2); err == nil || errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("GitHub is down: got %v", err)
	}
}

func TestDeleteRunner(t *testing.T) {
	f := newFake("free", "busy")
	c := serve(t, f)
	for _, name := range []string{"there", "gone already"} {
		if err := c.DeleteRunner(t.Context(), "acme/app", 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.DeleteRunner(t.Context(), "acme/app", 2); !errors.Is(err, lifecycle.ErrBusy) {
		t.Errorf("busy: got %v", err)
	}
	if len(f.runners) != 1 {
		t.Errorf("%d runners are left, want the busy one", len(f.runners))
	}
}

func TestSetLabels(t *testing.T) {
	for _, organization := range []bool{false, true} {
		f := newFake("a")
		c := newClient(t, github.Config{Transport: direct{f}, Organization: organization})
		if err := c.SetLabels(t.Context(), "acme/app", 1, []string{"4711", "fast"}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string][]string{"labels": {"4711", "fast"}}, f.labels); d != "" {
			t.Errorf("organization %t: %s", organization, d)
		}
		want := map[bool]string{false: "token: PUT /repos/acme/app/actions/runners/1/labels", true: "token: PUT /orgs/acme/actions/runners/1/labels"}[organization]
		if got := f.callsOf(); !slices.Contains(got, want) {
			t.Errorf("calls %v, want %s", got, want)
		}
	}
}

func TestRepositoriesCannotLeadElsewhere(t *testing.T) {
	f := newFake()
	c := serve(t, f)
	for _, repository := range []string{"", "acme", "acme/", "/app", "acme/..", "acme/app/x", "a b/c", "../user", "acme/app?x=", "acme/a%2fb"} {
		if _, err := c.RegistrationToken(t.Context(), repository); err == nil {
			t.Errorf("%q was taken", repository)
		}
		if err := c.DeleteRunner(t.Context(), repository, 1); err == nil {
			t.Errorf("%q was taken", repository)
		}
	}
	if n := f.count(); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}
