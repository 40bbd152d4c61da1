package github_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
)

// TestMirrorOfTheStandIn: the token of a mirror reads the contents of its repository, and nothing else. It is made once for all hosts of a repository.
func TestMirrorOfTheStandIn(t *testing.T) {
	for _, organization := range []bool{false, true} {
		s := startStandin(t)
		s.call(200, "PUT", "/_standin/apps", "", map[string]any{
			"app_id": 7, "client_id": "Iv23mine", "private_key": appPEM().Reveal(), "owners": []string{"acme"},
			"permissions": map[string]string{"contents": "read", "actions": "write", "administration": "write", "organization_self_hosted_runners": "write", "metadata": "read"},
		}, nil)
		s.call(204, "PUT", "/_standin/protected-branches", "", map[string]any{"repository": "acme/app", "branches": []string{"main"}}, nil)
		for _, repository := range []string{"acme/app", "acme/other"} {
			s.call(201, "POST", "/_standin/runs", "", map[string]any{
				"repository": repository, "event": "push", "sha": strings.Repeat("a", 40), "workflow": "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"}, nil)
		}
		c := newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil), Organization: organization,
			Apps: []github.App{{ClientID: "Iv23mine", PrivateKey: appPEM()}}})
		m, err := c.Mirror(t.Context(), "acme/App", "main")
		if err != nil {
			t.Fatal(err)
		}
		if m.URL != s.url+"/acme/App.git" || m.Branch != "main" || time.Until(m.ExpiresAt) < 10*time.Minute {
			t.Errorf("mirror %v", m)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %s %#v", m, &m, m, m), m.Token.Reveal()) {
			t.Error("it prints its token")
		}
		token := m.Token.Reveal()
		s.call(200, "GET", "/api/v3/repos/acme/app/branches/main", token, nil, nil)
		s.call(404, "GET", "/api/v3/repos/acme/other/branches/main", token, nil, nil)
		s.call(403, "POST", "/api/v3/repos/acme/app/actions/runners/registration-token", token, nil, nil)
		s.call(403, "GET", "/api/v3/repos/acme/app/actions/runs", token, nil, nil)
		again, err := c.Mirror(t.Context(), "acme/app", "release/1")
		if err != nil || again.Token != m.Token || again.Branch != "release/1" {
			t.Errorf("again: %v, %v", again, err)
		}
		other, err := c.Mirror(t.Context(), "acme/other", "main")
		if err != nil || other.Token == m.Token {
			t.Errorf("of another repository: %v, %v", other, err)
		}
		if _, err := c.Mirror(t.Context(), "mallory/app", "main"); err == nil {
			t.Error("a repository without the App has a token")
		}
	}
}

// TestMirrorWithoutAnApp: the token of a user reads more than one repository, so no host gets it.
func TestMirrorWithoutAnApp(t *testing.T) {
	s := startStandin(t)
	c := newClient(t, github.Config{URL: s.url + "/api/v3"})
	if m, err := c.Mirror(t.Context(), "acme/app", "main"); err == nil || m.Token != "" {
		t.Errorf("got %v", m)
	}
}
