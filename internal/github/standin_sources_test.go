package github_test

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/policy"
)

// TestSourcesOfTheStandIn: what the verdict on caches rests on, in the shapes of GitHub's description: a push, an older push, a tag that is called as
// the branch, and the pull request of a fork whose branch is called so too.
func TestSourcesOfTheStandIn(t *testing.T) {
	s := startStandin(t)
	s.call(204, "PUT", "/_standin/protected-branches", "", map[string]any{"repository": "Acme/App", "branches": []string{"main"}}, nil)
	sha := func(digit string) string { return strings.Repeat(digit, 40) }
	next := 100
	start := func(origin map[string]any) string {
		t.Helper()
		next++
		body := map[string]any{"repository": "acme/app", "run_id": strconv.Itoa(next), "workflow": "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"}
		maps.Copy(body, origin)
		s.call(201, "POST", "/_standin/runs", "", body, nil)
		return strconv.Itoa(next)
	}
	older, last := start(map[string]any{"event": "push", "sha": sha("a")}), start(map[string]any{"event": "push", "sha": sha("b")})
	runs := map[string]struct {
		id    string
		keeps bool
	}{
		"an older push": {older, true},
		"the last push": {last, true},
		"a tag":         {start(map[string]any{"event": "push", "ref": "refs/tags/main", "sha": sha("c")}), false},
		"a fork":        {start(map[string]any{"event": "pull_request", "head_repository": "mallory/app", "head_branch": "main", "sha": sha("d")}), false},
		"a topic":       {start(map[string]any{"event": "push", "head_branch": "topic/x", "sha": sha("e")}), false},
	}
	c := newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil)})
	for name, run := range runs {
		source, err := c.RunSource(t.Context(), "acme/app", run.id)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		branch, err := c.Branch(t.Context(), "acme/app", source.Branch, source.SHA)
		if err != nil && (!errors.Is(err, lifecycle.ErrNotFound) || run.keeps) {
			t.Fatalf("%s: %v", name, err)
		}
		if keeps, why := policy.KeepsCaches(source, nil, &branch); keeps != run.keeps {
			t.Errorf("%s: keeps %v: %s (%+v, %+v)", name, keeps, why, source, branch)
		}
	}
	source, err := c.RunSource(t.Context(), "acme/app", runs["a topic"].id)
	if err != nil {
		t.Fatal(err)
	}
	branch, err := c.Branch(t.Context(), "acme/app", source.Branch, source.SHA)
	if d := cmp.Diff(cache.Branch{Has: true}, branch); err != nil || d != "" {
		t.Errorf("a branch with a slash: %v %s", err, d)
	}
	if _, err := c.Branch(t.Context(), "acme/app", "gone", sha("a")); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("a branch that there is not: %v", err)
	}
	if branch, err := c.Branch(t.Context(), "acme/app", "main", sha("f")); err != nil || branch.Has {
		t.Errorf("a commit that there is not: %+v %v", branch, err)
	}
}
