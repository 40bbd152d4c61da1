package githubsim_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// push makes a branch of one commit with one file, and returns the SHA of the commit.
func (s *standin) push(branch, path, content string) string {
	s.t.Helper()
	var tree, commit struct{ SHA string }
	s.call(201, "POST", "/repos/acme/app/git/trees", map[string]any{"tree": []any{
		map[string]any{"path": path, "mode": "100644", "type": "blob", "content": content},
	}}, &tree)
	s.call(201, "POST", "/repos/acme/app/git/commits", map[string]any{"message": "first", "tree": tree.SHA}, &commit)
	s.call(201, "POST", "/repos/acme/app/git/refs", map[string]any{"ref": "refs/heads/" + branch, "sha": commit.SHA}, nil)
	return commit.SHA
}

type runList struct {
	Runs []struct {
		ID              int64
		Event, Path     string
		HeadBranch, SHA string
	} `json:"workflow_runs"`
}

func TestABranchThatIsMadeStartsItsWorkflows(t *testing.T) {
	s := start(t)
	for name, c := range map[string]struct {
		path, content string
		want          int
	}{
		"a workflow for pushes":      {".github/workflows/a.yml", oneJob, 1},
		"one for other events":       {".github/workflows/a.yml", strings.Replace(oneJob, "on: push", "on: workflow_dispatch", 1), 0},
		"a file that is no workflow": {"a.yml", oneJob, 0},
	} {
		t.Run(name, func(t *testing.T) {
			branch := strings.ReplaceAll(name, " ", "-") + "/x"
			sha := s.push(branch, c.path, c.content)
			var runs runList
			s.call(200, "GET", "/repos/acme/app/actions/runs?head_sha="+sha, nil, &runs)
			if len(runs.Runs) != c.want {
				t.Fatalf("%d runs", len(runs.Runs))
			}
			if c.want > 0 && (runs.Runs[0].Event != "push" || runs.Runs[0].Path != c.path) {
				t.Errorf("%+v", runs.Runs[0])
			}
			s.call(422, "POST", "/repos/acme/app/git/refs", map[string]any{"ref": "refs/heads/" + branch, "sha": sha}, nil)
			s.call(204, "DELETE", "/repos/acme/app/git/refs/heads/"+branch, nil, nil)
			s.call(422, "DELETE", "/repos/acme/app/git/refs/heads/"+branch, nil, nil)
		})
	}
}

func TestGitObjectsThatAreNotThere(t *testing.T) {
	s := start(t)
	none := strings.Repeat("0", 40)
	s.call(422, "POST", "/repos/acme/app/git/commits", map[string]any{"message": "m", "tree": none}, nil)
	s.call(422, "POST", "/repos/acme/app/git/refs", map[string]any{"ref": "refs/heads/a", "sha": none}, nil)
	s.call(422, "POST", "/repos/acme/app/git/refs", map[string]any{"ref": "refs/tags/a", "sha": none}, nil)
	s.call(422, "POST", "/repos/acme/app/git/trees", map[string]any{"tree": []any{}}, nil)
}

// TestLogOfACompletedJob follows GitHub's answer to the address of the log, which needs no credentials.
func TestLogOfACompletedJob(t *testing.T) {
	s := start(t)
	id := s.startRun("on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n      - run: echo spoken\n")
	path := fmt.Sprintf("/repos/acme/app/actions/jobs/%d/logs", s.run(id).Jobs[0].ID)
	s.call(404, "GET", path, nil, nil)
	s.call(403, "DELETE", fmt.Sprintf("/repos/acme/app/actions/runs/%d", id), nil, nil)
	s.online("a", "x")
	s.completed(id)
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	to := s.call(302, "GET", path, nil, nil).Get("Location")
	resp, err := s.client.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(text), "spoken") {
		t.Errorf("%d %v %q", resp.StatusCode, err, text)
	}
	s.call(204, "DELETE", fmt.Sprintf("/repos/acme/app/actions/runs/%d", id), nil, nil)
	s.call(404, "GET", fmt.Sprintf("/repos/acme/app/actions/runs/%d", id), nil, nil)
	s.call(404, "GET", path, nil, nil)
}
