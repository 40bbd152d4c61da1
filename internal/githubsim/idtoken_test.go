package githubsim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

const tokenJob = "on: push\nname: calls\npermissions: {id-token: write}\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"

// acquired has the puppet begin its next job.
func (p *puppet) acquired() protocol.Job {
	p.s.t.Helper()
	var job protocol.Job
	p.s.callWith(p.auth, 200, "POST", fmt.Sprintf(protocol.PathAcquire, p.poll().JobID), nil, &job)
	return job
}

// idToken asks as a workflow does.
func (s *standin) idToken(want int, job protocol.Job, audience string) string {
	s.t.Helper()
	var got struct {
		Count int
		Value string
	}
	s.callWith(http.Header{"Authorization": {"Bearer " + job.IDTokenSecret}}, want, "GET", strings.TrimPrefix(job.IDTokenURL, s.url)+"&audience="+audience, nil, &got)
	if got.Count != len(got.Value) {
		s.t.Errorf("count %d of %d", got.Count, len(got.Value))
	}
	return got.Value
}

func TestIDTokenOfAJob(t *testing.T) {
	s := start(t)
	p := s.newPuppet("a")
	id := s.startRunFrom(map[string]any{"workflow": tokenJob, "event": "push", "ref": "refs/heads/topic", "sha": strings.Repeat("ab", 20), "path": ".github/workflows/ci.yml"})
	job := p.acquired()
	got := s.verified(s.idToken(200, job, "remuda"))
	if got["jti"] == s.verified(s.idToken(200, job, "remuda"))["jti"] {
		t.Error("two tokens with one jti")
	}
	now := float64(s.clock.Now().Unix())
	want := map[string]any{
		"iss": s.url, "aud": "remuda", "sub": "repo:acme/app:ref:refs/heads/topic", "jti": got["jti"], "iat": now, "nbf": now, "exp": now + 300,
		"repository": "acme/app", "repository_id": got["repository_id"], "repository_owner": "acme", "repository_owner_id": got["repository_owner_id"],
		"repository_visibility": "private", "run_id": fmt.Sprint(id), "run_number": "1", "run_attempt": "1", "actor": "remuda-standin",
		"actor_id": got["actor_id"], "event_name": "push", "ref": "refs/heads/topic", "ref_type": "branch", "ref_protected": "false",
		"head_ref": "", "base_ref": "", "sha": strings.Repeat("ab", 20), "workflow": "calls", "workflow_sha": strings.Repeat("ab", 20),
		"workflow_ref": "acme/app/.github/workflows/ci.yml@refs/heads/topic", "job_workflow_sha": strings.Repeat("ab", 20),
		"job_workflow_ref": "acme/app/.github/workflows/ci.yml@refs/heads/topic", "runner_environment": "self-hosted", "check_run_id": fmt.Sprint(job.ID),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var repo struct {
		Repository struct {
			ID    float64
			Owner struct{ ID float64 }
		}
	}
	s.call(200, "GET", fmt.Sprintf("/repos/acme/app/actions/runs/%d", id), nil, &repo)
	if got["repository_id"] != fmt.Sprint(int64(repo.Repository.ID)) || got["repository_owner_id"] != fmt.Sprint(int64(repo.Repository.Owner.ID)) {
		t.Errorf("ids %v and %v, of the run %+v", got["repository_id"], got["repository_owner_id"], repo)
	}
	if aud := s.verified(s.idToken(200, job, ""))["aud"]; aud != s.url+"/acme" {
		t.Errorf("default audience %v", aud)
	}
	stranger := job
	stranger.IDTokenSecret = "x"
	s.idToken(401, stranger, "remuda")
	s.callWith(http.Header{"Authorization": {"Bearer " + job.Token}}, 204, "POST", fmt.Sprintf(protocol.PathComplete, job.ID), protocol.Complete{Conclusion: "success"}, nil)
	s.idToken(401, job, "remuda")
}

func TestWhoMayAskForIDTokens(t *testing.T) {
	s := start(t)
	p := s.newPuppet("a")
	body := func(top, inJob string) string {
		return "on: push\n" + top + "jobs:\n  j:\n    runs-on: box\n" + inJob + "    steps: [{run: 'true'}]\n"
	}
	for name, tc := range map[string]struct {
		origin map[string]any
		want   bool
	}{
		"the workflow says so":           {map[string]any{"workflow": body("permissions: {id-token: write}\n", "")}, true},
		"the job says so":                {map[string]any{"workflow": body("", "    permissions: {id-token: write}\n")}, true},
		"all is allowed":                 {map[string]any{"workflow": body("permissions: write-all\n", "")}, true},
		"nothing says so":                {map[string]any{"workflow": body("", "")}, false},
		"read only":                      {map[string]any{"workflow": body("permissions: read-all\n", "")}, false},
		"none":                           {map[string]any{"workflow": body("permissions: {id-token: none, contents: write}\n", "")}, false},
		"the job's stand for themselves": {map[string]any{"workflow": body("permissions: {id-token: write}\n", "    permissions: {contents: read}\n")}, false},
		"a pull request":                 {map[string]any{"workflow": tokenJob, "event": "pull_request"}, true},
		"from a fork":                    {map[string]any{"workflow": tokenJob, "event": "pull_request", "head_repository": "mallory/app"}, false},
		"from a fork, on the base":       {map[string]any{"workflow": tokenJob, "event": "pull_request_target", "head_repository": "mallory/app"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.startRunFrom(tc.origin)
			job := p.acquired()
			if got := job.IDTokenURL != "" && job.IDTokenSecret != ""; got != tc.want {
				t.Errorf("it may: %v", got)
			}
			s.callWith(http.Header{"Authorization": {"Bearer " + job.Token}}, 204, "POST", fmt.Sprintf(protocol.PathComplete, job.ID), protocol.Complete{Conclusion: "success"}, nil)
		})
	}
	s.t = t
}

func TestOriginsOfRuns(t *testing.T) {
	s := start(t)
	p := s.newPuppet("a")
	for name, tc := range map[string]struct {
		origin, want map[string]any
	}{
		"dispatched": {nil, map[string]any{"event_name": "workflow_dispatch", "ref": "refs/heads/main", "ref_type": "branch", "head_ref": "", "base_ref": "", "sub": "repo:acme/app:ref:refs/heads/main"}},
		"a tag":      {map[string]any{"event": "push", "ref": "refs/tags/v1"}, map[string]any{"event_name": "push", "ref": "refs/tags/v1", "ref_type": "tag", "head_ref": "", "base_ref": "", "sub": "repo:acme/app:ref:refs/tags/v1"}},
		"a pull request": {map[string]any{"event": "pull_request", "head_branch": "topic"},
			map[string]any{"event_name": "pull_request", "ref": "refs/pull/1/merge", "ref_type": "branch", "head_ref": "topic", "base_ref": "main", "sub": "repo:acme/app:pull_request"}},
		"on the base": {map[string]any{"event": "pull_request_target", "head_repository": "mallory/app"},
			map[string]any{"event_name": "pull_request_target", "ref": "refs/heads/main", "ref_type": "branch", "head_ref": "patch-1", "base_ref": "main", "sub": "repo:acme/app:pull_request"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			body := map[string]any{"workflow": tokenJob}
			for k, v := range tc.origin {
				body[k] = v
			}
			s.startRunFrom(body)
			job := p.acquired()
			claims, got := s.verified(s.idToken(200, job, "x")), map[string]any{}
			for k := range tc.want {
				got[k] = claims[k]
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			s.callWith(http.Header{"Authorization": {"Bearer " + job.Token}}, 204, "POST", fmt.Sprintf(protocol.PathComplete, job.ID), protocol.Complete{Conclusion: "success"}, nil)
		})
	}
	s.t = t
	for _, wrong := range []map[string]any{{"event": "No"}, {"head_repository": "x"}, {"ref": "main"}, {"sha": "abc"}, {"path": "ci.yml"}} {
		body := map[string]any{"repository": "acme/app", "workflow": oneJob}
		for k, v := range wrong {
			body[k] = v
		}
		s.call(422, "POST", "/_standin/runs", body, nil)
	}
}

func TestForksAreShown(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	s.deliverTo(r, "hush", 0, 0)
	id := s.startRunFrom(map[string]any{"event": "pull_request", "head_repository": "mallory/app", "head_branch": "topic"})
	var run struct {
		Event, HeadBranch string
		Repository        struct{ ID int64 }
		HeadRepository    struct {
			ID   int64
			Fork bool
		} `json:"head_repository"`
		PullRequests []any `json:"pull_requests"`
	}
	s.call(200, "GET", fmt.Sprintf("/repos/acme/app/actions/runs/%d", id), nil, &run)
	if run.Event != "pull_request" || run.HeadRepository.ID == run.Repository.ID || !run.HeadRepository.Fork || len(run.PullRequests) != 0 {
		t.Errorf("%+v", run)
	}
	r.await(t, 2)
	head := r.bodies[0]["workflow_run"].(map[string]any)["head_repository"].(map[string]any)
	job := r.bodies[1]["workflow_job"].(map[string]any)
	if head["full_name"] != "mallory/app" || job["head_branch"] != "topic" {
		t.Errorf("%v, %v", head["full_name"], job["head_branch"])
	}
}

func TestStepsAskForIDTokens(t *testing.T) {
	s := start(t)
	s.online("a", "box")
	const steps = `steps: [{run: 'echo "url ${ACTIONS_ID_TOKEN_REQUEST_URL-none} token ${#ACTIONS_ID_TOKEN_REQUEST_TOKEN}"; echo "$GITHUB_WORKFLOW_REF $GITHUB_WORKFLOW_SHA"'}]}` + "\n"
	sha := strings.Repeat("ab", 20)
	id := s.startRunFrom(map[string]any{"sha": sha, "workflow": "on: push\njobs:\n  with: {runs-on: box, permissions: {id-token: write}, " + steps + "  without: {runs-on: box, " + steps})
	v := s.completed(id)
	if log := v.Jobs[0].Log; !strings.Contains(log, fmt.Sprintf("url %s/_standin/oidc/jobs/%d?api-version=2.0 token 26", s.url, v.Jobs[0].ID)) {
		t.Errorf("with: %s", log)
	}
	if log := v.Jobs[1].Log; !strings.Contains(log, "url none token 0") || !strings.Contains(log, "acme/app/.github/workflows/standin.yml@refs/heads/main "+sha) {
		t.Errorf("without: %s", log)
	}
}
