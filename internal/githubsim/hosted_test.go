package githubsim_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/runner"
)

func TestMachinesOfGitHubsOwn(t *testing.T) {
	s := start(t)
	binary, err := buildRunner()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var out bytes.Buffer
	go func() {
		ended <- runner.Hosted{URL: s.url, Owner: "acme", Runner: binary, Output: &out, Env: []string{"HAS=tools"}}.Run(ctx)
	}()
	id := s.startRunFrom(map[string]any{"workflow": `on: push
jobs:
  first: {runs-on: ubuntu-latest, steps: [{run: 'echo "on $RUNNER_ENVIRONMENT with $HAS"; echo > here'}]}
  second: {needs: first, runs-on: ubuntu-latest, steps: [{run: '[[ ! -e here ]]'}]}
  ours: {runs-on: self-hosted, steps: [{run: 'true'}]}
`})
	v := s.await(id, "jobs of GitHub's machines", func(v runView) bool { return v.Jobs[1].Status == "completed" })
	if v.Jobs[0].conclusion() != "success" || v.Jobs[1].conclusion() != "success" || !strings.Contains(v.Jobs[0].Log, "on github-hosted with tools") || *v.Jobs[0].Runner == *v.Jobs[1].Runner {
		t.Errorf("%+v", v)
	}
	if v.Jobs[2].Status != "queued" {
		t.Errorf("a job for self-hosted runners is %s", v.Jobs[2].Status)
	}
	var jobs struct {
		Jobs []struct {
			GroupName string `json:"runner_group_name"`
		}
	}
	if s.call(200, "GET", "/repos/acme/app/actions/runs/"+fmt.Sprint(id)+"/jobs", nil, &jobs); jobs.Jobs[0].GroupName != "GitHub Actions" {
		t.Errorf("its group is %q", jobs.Jobs[0].GroupName)
	}
	for name, count := range s.calls() {
		if strings.Contains(name, "token") || strings.Contains(name, "jitconfig") {
			t.Errorf("%d calls of %s", count, name)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("%v: %s", err, &out)
	}
	if left := s.runners(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestNoListHasMachinesOfGitHubsOwn(t *testing.T) {
	s := start(t)
	var made protocol.Registered
	s.call(201, "POST", protocol.PathRegister, protocol.Register{URL: s.url + "/acme", Name: "hosted", Labels: []string{"ubuntu-latest"}, Hosted: true}, &made)
	var listed struct {
		TotalCount int `json:"total_count"`
	}
	if s.call(200, "GET", "/orgs/acme/actions/runners", nil, &listed); listed.TotalCount != 0 {
		t.Errorf("%d are listed", listed.TotalCount)
	}
	s.call(404, "GET", fmt.Sprintf("/orgs/acme/actions/runners/%d", made.ID), nil, nil)
	s.call(404, "DELETE", fmt.Sprintf("/orgs/acme/actions/runners/%d", made.ID), nil, nil)
	if d := cmp.Diff([]runnerView{{ID: made.ID, Name: "hosted", Labels: []string{"ubuntu-latest"}, Status: "offline"}}, s.runners()); d != "" {
		t.Error(d)
	}
	s.call(404, "POST", protocol.PathRegister, protocol.Register{URL: s.url + "/acme", Name: "ours"}, nil) // without a token
	s.callWith(http.Header{}, 204, "POST", protocol.PathRemove, protocol.Remove{URL: s.url + "/acme", ID: made.ID}, nil)
}
