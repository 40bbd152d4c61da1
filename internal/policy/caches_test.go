package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/policy"
)

// otherEvents are the events that trigger workflows (docs.github.com, "Events that trigger workflows") and may not write, with some that are
// no events of workflows.
var otherEvents = []string{
	"branch_protection_rule", "check_run", "check_suite", "create", "delete", "deployment", "deployment_status", "discussion", "discussion_comment",
	"dynamic", "fork", "gollum", "image_version", "issue_comment", "issues", "label", "milestone", "page_build", "project", "project_card", "project_column", "public",
	"pull_request", "pull_request_comment", "pull_request_review", "pull_request_review_comment", "pull_request_target", "registry_package", "release",
	"repository_dispatch", "status", "watch", "workflow_call", "workflow_run", "", "Push", "push ", "push\n", "an_event_of_next_year",
}

func onMain(event string) cache.Source {
	return cache.Source{Event: event, Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}
}

// TestEventsThatWrite: with everything else in order, the event alone decides.
func TestEventsThatWrite(t *testing.T) {
	t.Parallel()
	sound := &cache.Branch{Protected: true, Has: true}
	for _, from := range [][]string{nil, {"main"}, {"**"}} {
		for _, event := range policy.WritingEvents {
			if keeps, why := policy.KeepsCaches(onMain(event), from, sound); !keeps {
				t.Errorf("%s from %q: thrown away: %s", event, from, why)
			}
		}
		for _, event := range otherEvents {
			if keeps, why := policy.KeepsCaches(onMain(event), from, sound); keeps || !strings.Contains(why, "event") {
				t.Errorf("%q from %q: kept %v: %s", event, from, keeps, why)
			}
		}
	}
	for _, event := range otherEvents {
		if slices.Contains(policy.WritingEvents, event) {
			t.Errorf("%s both writes and does not", event)
		}
	}
}

func TestKeepsCaches(t *testing.T) {
	t.Parallel()
	has, protected := &cache.Branch{Has: true}, &cache.Branch{Has: true, Protected: true}
	run := func(change func(*cache.Source)) cache.Source {
		s := onMain("push")
		change(&s)
		return s
	}
	main := run(func(*cache.Source) {})
	tests := map[string]struct {
		run    cache.Source
		from   []string
		branch *cache.Branch
		keeps  bool
		why    string // part of it
	}{
		"a protected branch":                       {main, nil, protected, true, `"main" is protected`},
		"a branch that is not protected":           {main, nil, has, false, "is not protected"},
		"a branch of from":                         {main, []string{"release/*", "main"}, has, true, "matches `from`"},
		"a branch of from that is not protected":   {main, []string{"main"}, has, true, "matches `from`"},
		"another branch, though it is protected":   {main, []string{"release/*"}, protected, false, "none of `from`"},
		"a star is no slash":                       {run(func(s *cache.Source) { s.Branch = "release/1/x" }), []string{"release/*"}, has, false, "none of"},
		"the beginning of a branch":                {run(func(s *cache.Source) { s.Branch = "mainline" }), []string{"main"}, has, false, "none of"},
		"another case, which is another branch":    {run(func(s *cache.Source) { s.Branch = "Main" }), []string{"main"}, has, false, "none of"},
		"a fork whose branch is called main":       {run(func(s *cache.Source) { s.HeadRepositoryID = 8 }), []string{"main"}, protected, false, "repository itself"},
		"a head repository that is gone":           {run(func(s *cache.Source) { s.HeadRepositoryID = 0 }), nil, protected, false, "repository itself"},
		"no repository at all":                     {run(func(s *cache.Source) { s.RepositoryID, s.HeadRepositoryID = 0, 0 }), nil, protected, false, "repository itself"},
		"no branch":                                {run(func(s *cache.Source) { s.Branch = "" }), []string{"**"}, protected, false, "no branch"},
		"no commit":                                {run(func(s *cache.Source) { s.SHA = "" }), nil, protected, false, "no branch"},
		"a tag called main":                        {main, []string{"main"}, &cache.Branch{Protected: true}, false, `not on the branch "main"`},
		"a tag called main, of a protected branch": {main, nil, &cache.Branch{Protected: true}, false, `not on the branch "main"`},
		"a queue without from":                     {run(func(s *cache.Source) { s.Event, s.Branch = "merge_group", "gh-readonly-queue/main/pr-1-a1" }), nil, has, false, "is not protected"},
		"a queue that from names":                  {run(func(s *cache.Source) { s.Event, s.Branch = "merge_group", "gh-readonly-queue/main/pr-1-a1" }), []string{"gh-readonly-queue/main/*"}, has, true, "matches"},
		"GitHub is not asked yet":                  {main, nil, nil, true, ""},
		"GitHub need not be asked":                 {main, []string{"x"}, nil, false, "none of"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			keeps, why := policy.KeepsCaches(tt.run, tt.from, tt.branch)
			if keeps != tt.keeps || !strings.Contains(why, tt.why) {
				t.Errorf("keeps %v: %s; want %v: %s", keeps, why, tt.keeps, tt.why)
			}
		})
	}
}

// FuzzKeepsCaches: whatever GitHub says, the sentence is short and of one line, and no run of a fork writes.
func FuzzKeepsCaches(f *testing.F) {
	f.Add("push", "main", "a1", int64(1), int64(2))
	f.Fuzz(func(t *testing.T, event, branch, sha string, repository, head int64) {
		run := cache.Source{Event: event, Branch: branch, SHA: sha, RepositoryID: repository, HeadRepositoryID: head}
		keeps, why := policy.KeepsCaches(run, []string{"**"}, &cache.Branch{Protected: true, Has: true})
		if len(why) > 400 || strings.ContainsAny(why, "\n\r\x1b\x00") {
			t.Errorf("not a sentence: %q", why)
		}
		if keeps && repository != head {
			t.Error("a run of a fork writes")
		}
	})
}
