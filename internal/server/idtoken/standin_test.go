package idtoken_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/server/idtoken"
)

// What the stand-in for GitHub issues is as good as GitHub's.
func TestTheStandInsTokensAreTaken(t *testing.T) {
	web := httptest.NewUnstartedServer(nil)
	url := "http://" + web.Listener.Addr().String()
	standIn, err := githubsim.New(githubsim.Options{StateDir: t.TempDir(), BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = standIn.Handler()
	web.Start()
	t.Cleanup(func() {
		web.Close()
		if err := standIn.Close(); err != nil {
			t.Error(err)
		}
	})
	body := strings.NewReader(`{"claims": {"aud": "remuda", "repository": "acme/app", "run_id": "42", "run_attempt": "1", "event_name": "push"}}`)
	resp, err := http.Post(url+"/_standin/oidc/token", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Value string `json:"value"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	v, err := idtoken.New(idtoken.Options{Issuer: url, Audience: "remuda"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Verify(t.Context(), answer.Value)
	if err != nil || got.Origin.Repository != "acme/app" || got.Origin.RunID != "42" || got.RunAttempt != 1 || got.Origin.RepositoryID == 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}
