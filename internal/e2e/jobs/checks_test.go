package jobs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/local"
)

// check is a check run as GitHub shows it.
type check struct {
	Status, Conclusion string
	Output             struct{ Title, Summary string }
}

// checksOf are the check runs on the commit of a run, the newest first.
func (s *stage) checksOf(repository, run string) (checks []check, err error) {
	var of struct {
		HeadSHA string `json:"head_sha"`
	}
	if err := s.getGitHub("/repos/"+repository+"/actions/runs/"+run, &of); err != nil {
		return nil, err
	}
	var list struct {
		CheckRuns []check `json:"check_runs"`
	}
	err = s.getGitHub("/repos/"+repository+"/commits/"+of.HeadSHA+"/check-runs", &list)
	return list.CheckRuns, err
}

func (s *stage) getGitHub(path string, into any) error {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.GitHub.URL()+"/api/v3"+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer any")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return json.NewDecoder(resp.Body).Decode(into)
}

// hasCheck says what is wrong if the commit of a run has no check run like this. Other runs of the commit have theirs beside it.
func (s *stage) hasCheck(repository, run, status, conclusion, says string) string {
	checks, err := s.checksOf(repository, run)
	for _, c := range checks {
		if c.Status == status && c.Conclusion == conclusion && strings.Contains(c.Output.Title+"\n"+c.Output.Summary, says) {
			return ""
		}
	}
	return fmt.Sprintf("the check runs of %s are %+v (%v), and none is %s %s with %q", run, checks, err, status, conclusion, says)
}

// TestCheckRuns: a run whose job waits for a full pool has a check run on its commit that says so, in the words of `remuda why`, and that is completed when the
// job has its host. A job that gets no host has one that asks for an action.
func TestCheckRuns(t *testing.T) {
	t.Parallel()
	s := newServed(t, 1, "  check_runs_after: 10s\npools: {small: {jobs: {labels: [small], maximum: 1, repositories: [\"acme/*\"]}}}\n")
	gate := filepath.Join(t.TempDir(), "gate")
	s.run("8001", workflow(1, "small", "until [ -e "+gate+" ]; do sleep 0.1; done"))
	s.eventually(func() string { return s.runIs("8001", "in_progress") })
	s.from("acme/web", "8002", "small", local.Origin{})
	s.from("acme/site", "8003", "smal", local.Origin{})
	s.eventually(func() string {
		return s.hasCheck("acme/web", "8002", "queued", "", "pool small has 1 of 1 host, its maximum")
	})
	s.eventually(func() string { return s.hasCheck("acme/site", "8003", "completed", "action_required", "small") })
	if checks, err := s.checksOf(repository, "8001"); err != nil || len(checks) > 0 {
		t.Errorf("a run that waited for a moment has check runs %v: %v", checks, err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.eventually(func() string {
		return s.hasCheck("acme/web", "8002", "completed", "neutral", "nothing waits for hosts any more")
	})
}
