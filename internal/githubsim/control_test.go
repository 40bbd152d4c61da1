package githubsim_test

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// calls are the counts of /_standin/calls.
func (s *standin) calls() map[string]int {
	s.t.Helper()
	var got struct {
		Calls []struct {
			Method, Route string
			Count         int
		}
	}
	s.call(200, "GET", "/_standin/calls", nil, &got)
	out := map[string]int{}
	for _, c := range got.Calls {
		out[c.Method+" "+c.Route] = c.Count
	}
	return out
}

func TestCallsAreCountedByRoute(t *testing.T) {
	s := start(t)
	s.call(404, "GET", "/repos/acme/app/actions/runners/1", nil, nil)
	s.call(404, "GET", "/api/v3/repos/acme/app/actions/runners/2", nil, nil)
	s.call(200, "GET", "/orgs/acme/actions/runners?per_page=5", nil, nil)
	s.call(404, "GET", "/nothing", nil, nil)
	want := map[string]int{
		"GET /repos/{owner}/{repo}/actions/runners/{id}": 2, "GET /orgs/{org}/actions/runners": 1, "GET (unknown)": 1,
	}
	if d := cmp.Diff(want, s.calls()); d != "" {
		t.Error(d)
	}
}

func TestFaults(t *testing.T) {
	s := start(t)
	fault := func(want int, route string, status, count, delay int) {
		s.t.Helper()
		s.call(want, "POST", "/_standin/faults", map[string]any{"route": route, "status": status, "count": count, "delay_ms": delay}, nil)
	}
	fault(204, "registration-token", 503, 2, 0)
	s.call(503, "POST", "/repos/acme/app/actions/runners/registration-token", nil, nil)
	s.call(201, "POST", "/repos/acme/app/actions/runners/remove-token", nil, nil)
	s.call(503, "POST", "/api/v3/orgs/acme/actions/runners/registration-token", nil, nil)
	s.call(201, "POST", "/orgs/acme/actions/runners/registration-token", nil, nil)

	fault(204, "GET /orgs/{org}/actions/runners", 429, 0, 0)
	if h := s.call(429, "GET", "/orgs/acme/actions/runners", nil, nil); h.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s.call(200, "GET", "/orgs/acme/actions/runners", nil, nil)

	fault(204, "*", 0, 1, 50)
	before := time.Now()
	s.call(200, "GET", "/orgs/acme/actions/runners", nil, nil)
	if took := time.Since(before); took < 50*time.Millisecond {
		t.Errorf("took %s", took)
	}
	fault(422, "no-such-route", 500, 1, 0)
	fault(422, "*", 200, 1, 0)
	fault(422, "*", 0, 1, 0)
	fault(422, "*", 500, -1, 0)
	s.call(400, "POST", "/_standin/faults", map[string]any{"rout": "*"}, nil)
}

func TestRunnerOutlivesFaults(t *testing.T) {
	s := start(t)
	s.online("a", "box")
	for _, route := range []string{"acquire", "log", "steps", "complete", "messages"} {
		s.call(204, "POST", "/_standin/faults", map[string]any{"route": route, "status": 502, "count": 2}, nil)
	}
	v := s.completed(s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: echo hello}]}\n"))
	if *v.Conclusion != "success" || !strings.Contains(v.Jobs[0].Log, "\nhello\n") {
		t.Errorf("%+v", v)
	}
}

func TestStartIsRefused(t *testing.T) {
	s := start(t)
	s.startExample(5, oneJob)
	for name, tc := range map[string]struct {
		body any
		want int
	}{
		"no repository":     {map[string]any{"workflow": oneJob}, 422},
		"path":              {map[string]any{"repository": "acme/..", "workflow": oneJob}, 422},
		"three parts":       {map[string]any{"repository": "acme/app/x", "workflow": oneJob}, 422},
		"no workflow":       {map[string]any{"repository": "acme/app"}, 422},
		"run id taken":      {map[string]any{"repository": "acme/app", "run_id": 5, "workflow": oneJob}, 409},
		"negative run id":   {map[string]any{"repository": "acme/app", "run_id": -5, "workflow": oneJob}, 422},
		"unknown field":     {map[string]any{"repository": "acme/app", "workflow": oneJob, "colour": 1}, 400},
		"not an object":     {[]int{1}, 400},
		"broken YAML":       {map[string]any{"repository": "acme/app", "workflow": "on: [push\njobs"}, 422},
		"huge":              {map[string]any{"repository": "acme/app", "workflow": strings.Repeat("#", 5<<20)}, 400},
		"matrix of nothing": {map[string]any{"repository": "acme/app", "workflow": "on: push\njobs:\n  j: {runs-on: x, strategy: {matrix: {a: [1], exclude: [{a: 1}]}}, steps: [{run: x}]}\n"}, 422},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.call(tc.want, "POST", "/_standin/runs", tc.body, nil)
		})
	}
	s.t = t
	var text struct{ Errors []string }
	s.call(422, "POST", "/_standin/runs", map[string]any{"repository": "acme/app", "workflow": "on: push\njobs:\n  j:\n    runs-on: x\n    steps:\n      - uses: actions/checkout@v4\n"}, &text)
	want := []string{`line 6, column 15: "uses" is not supported by the GitHub stand-in: action actions/checkout@v4 in jobs.j.steps[0]`}
	if d := cmp.Diff(want, text.Errors); d != "" {
		t.Error(d)
	}
	var asText runView
	s.call(201, "POST", "/_standin/runs", map[string]any{"repository": "acme/app", "run_id": "77", "workflow": oneJob}, &asText)
	if asText.ID != 77 {
		t.Errorf("run id given as a text: %d", asText.ID)
	}
}

func TestIDTokens(t *testing.T) {
	s := start(t)
	issue := func(body any) map[string]any {
		t.Helper()
		var got struct{ Value string }
		s.call(200, "POST", "/_standin/oidc/token", body, &got)
		return s.verified(got.Value)
	}
	claims := issue(map[string]any{"repository": "acme/app", "run_id": "4711", "aud": "remuda"})
	now := float64(s.clock.Now().Unix())
	for name, want := range map[string]any{
		"iss": s.url, "aud": "remuda", "repository": "acme/app", "repository_owner": "acme", "run_id": "4711", "iat": now, "exp": now + 300,
	} {
		if claims[name] != want {
			t.Errorf("%s is %v, want %v", name, claims[name], want)
		}
	}
	if got := issue(map[string]any{"claims": map[string]any{"iss": "https://elsewhere", "exp": 1}}); got["iss"] != "https://elsewhere" || got["exp"] != 1.0 {
		t.Errorf("%v", got)
	}
	s.stop()
	s.up()
	issue(map[string]any{})
}

// verified checks the signature of a token against the published key and returns its claims.
func (s *standin) verified(token string) map[string]any {
	s.t.Helper()
	var conf struct {
		Issuer  string
		JWKSURI string `json:"jwks_uri"`
	}
	s.call(200, "GET", "/.well-known/openid-configuration", nil, &conf)
	var keys struct {
		Keys []struct{ Kid, N, E, Alg string }
	}
	s.call(200, "GET", strings.TrimPrefix(conf.JWKSURI, s.url), nil, &keys)
	parts := strings.Split(token, ".")
	decode := func(text string) []byte {
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			s.t.Fatal(err)
		}
		return raw
	}
	var header struct{ Alg, Kid string }
	if err := json.Unmarshal(decode(parts[0]), &header); err != nil || header.Alg != "RS256" || header.Kid != keys.Keys[0].Kid {
		s.t.Fatalf("header %+v, keys %+v: %v", header, keys, err)
	}
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(decode(keys.Keys[0].N)), E: int(new(big.Int).SetBytes(decode(keys.Keys[0].E)).Int64())}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], decode(parts[2])); err != nil {
		s.t.Fatal(err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(decode(parts[1]), &claims); err != nil {
		s.t.Fatal(err)
	}
	return claims
}

func TestRestartKeepsEverything(t *testing.T) {
	s := start(t)
	c := s.clients()["at the root"]
	if _, _, err := c.Actions.GenerateRepoJITConfig(context.Background(), "acme", "app", jit("kept")); err != nil {
		t.Fatal(err)
	}
	token := s.token("registration")
	id := s.startRun(oneJob)
	before, runners := s.run(id), s.runners()
	for range 2 {
		s.stop()
		s.up()
	}
	if d := cmp.Diff(before, s.run(id)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(runners, s.runners()); d != "" {
		t.Error(d)
	}
	h := s.newHost("late")
	cmd := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + token}, "config.sh", "--unattended", "--url", s.url+"/acme/app", "--name", "late", "--labels", "box")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the token did not outlive the restart: %v: %s", err, out)
	}
	h.listen()
	if v := s.completed(id); *v.Conclusion != "success" || *v.Jobs[0].Runner != "late" {
		t.Errorf("%+v", v)
	}
	s.call(204, "DELETE", fmt.Sprintf("/repos/acme/app/actions/runners/%d", runners[0].ID), nil, nil)
	s.stop()
	s.up()
	if got := s.newPuppet("next"); got == nil || s.runners()[1].ID != 3 {
		t.Errorf("an id was given twice: %+v", s.runners())
	}
}
