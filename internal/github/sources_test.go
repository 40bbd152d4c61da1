package github_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// branchesOf is a GitHub with one run and some branches. It counts what it is asked.
type branchesOf struct {
	mu    sync.Mutex
	asked []string
}

func (g *branchesOf) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	g.asked = append(g.asked, r.URL.EscapedPath())
	g.mu.Unlock()
	branch := func(name, sha string, protected bool) map[string]any {
		return map[string]any{"name": name, "protected": protected, "commit": map[string]any{"sha": sha}}
	}
	answers := map[string]any{
		"/repos/acme/app/actions/runs/7": map[string]any{
			"id": 7, "event": "push", "head_branch": "main", "head_sha": "a1",
			"repository": map[string]any{"id": 1}, "head_repository": map[string]any{"id": 3},
		},
		"/repos/acme/app/branches/main":        branch("main", "c3", true),
		"/repos/acme/app/branches/release%2F1": branch("release/1", "a1", false),
		"/repos/acme/app/branches/renamed":     branch("main", "c3", true),
		"/repos/acme/app/compare/c3...a1":      map[string]any{"status": "behind"},
		"/repos/acme/app/compare/c3...b2":      map[string]any{"status": "diverged"},
		"/repos/acme/app/compare/c3...d4":      map[string]any{"status": "ahead"},
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	if answer, ok := answers[strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3")]; ok {
		_ = json.NewEncoder(w).Encode(answer)
	} else {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.WriteString(`{"message": "Not Found"}`)
	}
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

func (g *branchesOf) calls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asked)
}

func TestRunSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &branchesOf{}
		c := newClient(t, github.Config{Transport: g})
		want := cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 1, HeadRepositoryID: 3}
		for _, repository := range []string{"acme/app", "Acme/App"} {
			got, err := c.RunSource(t.Context(), repository, "7")
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("%v %s", err, d)
			}
		}
		if g.calls() != 1 {
			t.Errorf("asked %q, want once for all hosts of the run", g.asked)
		}
		time.Sleep(2 * time.Hour)
		if _, err := c.RunSource(t.Context(), "acme/app", "7"); err != nil || g.calls() != 2 {
			t.Errorf("after hours: %v, %d calls", err, g.calls())
		}
		for _, id := range []string{"8", "request-1", ""} {
			if _, err := c.RunSource(t.Context(), "acme/app", id); err == nil {
				t.Errorf("run %q: no error", id)
			}
		}
	})
}

func TestBranch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			what, name, sha string
			want            cache.Branch
			calls           int
			missing         bool
		}{
			{"the last commit", "release/1", "a1", cache.Branch{Has: true}, 1, false},
			{"an earlier commit", "main", "a1", cache.Branch{Protected: true, Has: true}, 2, false},
			{"a commit of a tag that is called as the branch", "main", "b2", cache.Branch{Protected: true}, 2, false},
			{"a commit that is not on the branch yet", "main", "d4", cache.Branch{Protected: true}, 2, false},
			{"a commit that GitHub does not have", "main", "e5", cache.Branch{Protected: true}, 2, false},
			{"no such branch", "topic", "a1", cache.Branch{}, 1, true},
		} {
			g := &branchesOf{}
			c := newClient(t, github.Config{Transport: g})
			got, err := c.Branch(t.Context(), "acme/app", tt.name, tt.sha)
			if d := cmp.Diff(tt.want, got); d != "" || errors.Is(err, lifecycle.ErrNotFound) != tt.missing || err != nil && !tt.missing {
				t.Errorf("%s: %v %s", tt.what, err, d)
			}
			if g.calls() != tt.calls {
				t.Errorf("%s: asked %q", tt.what, g.asked)
			}
			if tt.missing {
				continue
			}
			if _, err := c.Branch(t.Context(), "acme/app", tt.name, tt.sha); err != nil || g.calls() != tt.calls {
				t.Errorf("%s, again: %v, asked %q", tt.what, err, g.asked)
			}
			time.Sleep(2 * time.Minute)
			if _, err := c.Branch(t.Context(), "acme/app", tt.name, tt.sha); err != nil || g.calls() != 2*tt.calls {
				t.Errorf("%s, minutes later: %v, asked %q", tt.what, err, g.asked)
			}
		}
		g := &branchesOf{}
		c := newClient(t, github.Config{Transport: g})
		if is, err := c.Branch(t.Context(), "acme/app", "renamed", "c3"); err == nil {
			t.Errorf("the answer is of another branch, and taken: %+v", is)
		}
	})
}
