package githubsim_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v62/github"
)

// checksWith is a client of an installation that has a permission on checks, or none.
func (s *standin) checksWith(app int64, permission string) *github.Client {
	s.t.Helper()
	a := &testApp{s: s, id: app, key: appKey(), on: map[string]int64{}}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(a.key)})
	permissions := map[string]string{"actions": "read"}
	if permission != "" {
		permissions["checks"] = permission
	}
	var got struct{ Installations []struct{ ID int64 } }
	s.call(200, "PUT", "/_standin/apps", map[string]any{"app_id": app, "private_key": string(text), "owners": []string{"acme"}, "permissions": permissions}, &got)
	token, _, err := s.clientWith(a.token(nil)).Apps.CreateInstallationToken(context.Background(), got.Installations[0].ID, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.clientWith(token.GetToken())
}

// TestCheckRunsAreAsStrict: what GitHub refuses of check runs is refused, and a listing has what GitHub's has.
func TestCheckRunsAreAsStrict(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	c := s.checksWith(7, "write").Checks
	run, _, err := s.clientWith("any").Actions.GetWorkflowRunByID(ctx, "acme", "app", s.startRun("on: push\njobs:\n  j: {runs-on: nothing, steps: [{run: 'true'}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	sha := run.GetHeadSHA()
	made := func(name string) int64 {
		t.Helper()
		check, _, err := c.CreateCheckRun(ctx, "acme", "app", github.CreateCheckRunOptions{Name: name, HeadSHA: sha})
		if err != nil {
			t.Fatal(err)
		}
		return check.GetID()
	}
	update := func(id int64, o github.UpdateCheckRunOptions) int {
		_, resp, _ := c.UpdateCheckRun(ctx, "acme", "app", id, o)
		return resp.StatusCode
	}
	first, second := made("waits"), made("waits")
	other := made("lint")

	long := strings.Repeat("é", 65535/2)
	for name, tc := range map[string]struct {
		summary, text string
		want          int
	}{
		"as many bytes as may be":      {long + "x", long + "x", http.StatusOK},
		"a summary of too many bytes":  {long + "é", "", http.StatusUnprocessableEntity},
		"a text of too many bytes":     {"short", long + "é", http.StatusUnprocessableEntity},
		"a summary without characters": {"", "", http.StatusUnprocessableEntity},
	} {
		if got := update(second, github.UpdateCheckRunOptions{Name: "waits", Output: &github.CheckRunOutput{Title: github.String("t"), Summary: &tc.summary, Text: &tc.text}}); got != tc.want {
			t.Errorf("%s: status %d, want %d", name, got, tc.want)
		}
	}

	over := github.UpdateCheckRunOptions{Name: "waits", Status: github.String("completed"), Conclusion: github.String("neutral")}
	for _, step := range []struct {
		name string
		o    github.UpdateCheckRunOptions
		want int
	}{
		{"completed", over, http.StatusOK}, {"completed again", over, http.StatusOK}, {"renamed", github.UpdateCheckRunOptions{Name: "waits"}, http.StatusOK},
		{"queued again", github.UpdateCheckRunOptions{Name: "waits", Status: github.String("queued")}, http.StatusUnprocessableEntity},
		{"begun again", github.UpdateCheckRunOptions{Name: "waits", Status: github.String("in_progress")}, http.StatusUnprocessableEntity},
	} {
		if got := update(first, step.o); got != step.want {
			t.Errorf("%s: status %d, want %d", step.name, got, step.want)
		}
	}

	for name, tc := range map[string]struct {
		o    github.ListCheckRunsOptions
		want []int64
	}{
		"the newest of each name":           {github.ListCheckRunsOptions{}, []int64{other, second}},
		"latest, which is the same":         {github.ListCheckRunsOptions{Filter: github.String("latest")}, []int64{other, second}},
		"all":                               {github.ListCheckRunsOptions{Filter: github.String("all")}, []int64{other, second, first}},
		"of a name":                         {github.ListCheckRunsOptions{CheckName: github.String("lint")}, []int64{other}},
		"all of a status":                   {github.ListCheckRunsOptions{Filter: github.String("all"), Status: github.String("completed")}, []int64{first}},
		"a status that the newest have not": {github.ListCheckRunsOptions{Status: github.String("completed")}, nil},
	} {
		list, _, err := c.ListCheckRunsForRef(ctx, "acme", "app", sha, &tc.o)
		var got []int64
		for _, check := range list.CheckRuns {
			got = append(got, check.GetID())
		}
		if d := cmp.Diff(tc.want, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
	for permission, want := range map[string]int{"": http.StatusForbidden, "read": http.StatusOK} {
		if _, resp, _ := s.checksWith(8, permission).Checks.ListCheckRunsForRef(ctx, "acme", "app", sha, nil); resp.StatusCode != want {
			t.Errorf("with the permission %q: status %d, want %d", permission, resp.StatusCode, want)
		}
	}
}
