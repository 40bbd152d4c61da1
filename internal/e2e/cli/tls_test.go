package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// newSecured starts `controld serve` with TLS, an admin alice and a viewer bob, and returns the directory of the authority.
func newSecured(t *testing.T) (*stage, string) {
	t.Helper()
	s := newPerson(t)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca")
	s.controld("ca", "init", "--dir", ca, "--host", "127.0.0.1,controld.acme.com")
	for _, name := range []string{"alice", "bob", "carol"} {
		s.controld("ca", "issue", "--dir", ca, "--organization", "Acme", name)
	}
	standin, err := local.StartStandin(s.ctx, testrun.System.Dir(t), filepath.Join(t.TempDir(), "github"), s.log)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	t.Cleanup(func() {
		if err := standin.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := runner.LayOut(filepath.Join(dir, "runner"), filepath.Join(testrun.System.Dir(t), "standin-runner")); err != nil {
		t.Fatal(err)
	}
	s.start(local.Options{StateDir: dir, Serve: true, Config: s.secured(dir, ca, standin.GitHub), GitHubAddr: standin.Addr})
	return s, ca
}

// secured is the path of a configuration.
func (s *stage) secured(dir, ca string, github *local.GitHub) string {
	s.Helper()
	token, path := filepath.Join(dir, "token"), filepath.Join(dir, "controld.yaml")
	text := fmt.Sprintf(`
grpc: {addr: "127.0.0.1:0", tls: {cert_file: %[2]s/controld.crt, key_file: %[2]s/controld.key, client_ca_file: %[2]s/ca.pem}}
http: {addr: "127.0.0.1:0"}
store: {sqlite: {path: %[1]s/remuda.db}}
compute: {process: {directory: %[1]s/cloud, agentd: %[3]s/agentd, runner: %[1]s/runner}}
github: {url: %[4]s/api/v3, token_file: %[5]s, repositories: [acme/shop]}
callers:
  audience: remuda
  issuer: %[4]s
  operators: [{subject: "CN=alice,O=Acme", role: admin}, {subject: "CN=bob,O=Acme", role: viewer}]
  repositories: [{repository_id: %[6]s, repository: acme/shop, events: [workflow_dispatch], workflows: ["acme/shop/.github/workflows/*@**"], max_hosts: 2, max_runtime: 1h}]
`, dir, ca, testrun.System.Dir(s.T), github.URL(), token, s.claims(s.idToken(github, nil))["repository_id"])
	for file, text := range map[string]string{token: "a-token\n", path: text} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	return path
}

func (s *stage) controld(args ...string) {
	s.Helper()
	if out, err := exec.CommandContext(s.ctx, filepath.Join(testrun.System.Dir(s.T), "controld"), args...).CombinedOutput(); err != nil {
		s.Fatalf("controld %v: %v\n%s", args, err, out)
	}
}

// login are the arguments that log an operator in.
func (s *stage) login(ca, name string, more ...string) []string {
	return append([]string{"login", name, "--address", s.GRPCAddr, "--ca", filepath.Join(ca, "ca.pem"),
		"--cert", filepath.Join(ca, name+".crt"), "--key", filepath.Join(ca, name+".key")}, more...)
}

// TestOperators: a person logs in with a certificate, and may do what its role allows.
func TestOperators(t *testing.T) {
	s, ca := newSecured(t)
	pem := filepath.Join(ca, "ca.pem")
	s.fails(4, "callers.operators", s.login(ca, "carol")...) // no role
	s.fails(4, "a client certificate or an ID token", "login", "x", "--address", s.GRPCAddr, "--ca", pem)
	s.fails(5, "speaks TLS", "login", "x", "--address", s.GRPCAddr)
	s.fails(5, "is for controld.acme.com, 127.0.0.1, not for other.acme.com", s.login(ca, "alice", "--server-name", "other.acme.com")...)
	s.fails(2, "--cert, --key", "login", "x", "--address", s.GRPCAddr, "--cert", filepath.Join(ca, "alice.crt"))
	s.fails(1, "no such file", "login", "x", "--address", s.GRPCAddr, "--ca", filepath.Join(ca, "none.pem"))
	if _, err := os.Stat(s.config); err == nil {
		t.Error("a context was kept of a login that failed")
	}
	s.must(s.login(ca, "bob")...)
	s.must(s.login(ca, "alice", "--server-name", "controld.acme.com")...)
	if got := s.must("context", "list"); !strings.Contains(got, "CN=bob,O=Acme until ") {
		t.Errorf("contexts:\n%s", got)
	}
	s.must("hold", "--all")
	s.must("hold", "--all", "--off", "--context", "alice")
	s.must("ps", "--context", "bob")
	s.fails(4, "viewer", "hold", "--all", "--context", "bob")
	s.fails(4, "Roles of operators", "release", "acme/shop/41", "--context", "bob")
	s.must("ps", "--context", "bob", "--address", s.GRPCAddr)
	s.fails(5, "speaks TLS", "ps", "--address", s.GRPCAddr) // an address alone gets no certificate
}

// doctorChecks are the checks of the doctor by their names.
func (s *stage) doctorChecks(args ...string) (map[string]string, int) {
	s.Helper()
	r := s.remuda(append([]string{"doctor", "-o", "json"}, args...)...)
	var list struct {
		Checks []struct{ Check, Outcome, Detail string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		s.Fatalf("%v\n%s%s", err, r.stdout, r.stderr)
	}
	checks := map[string]string{}
	for _, c := range list.Checks {
		checks[c.Check] = c.Outcome + ": " + c.Detail
	}
	return checks, r.code
}

// TestDoctor: it looks from the outside in, and its exit code is that of what it found first.
func TestDoctor(t *testing.T) {
	s, ca := newSecured(t)
	s.must(s.login(ca, "alice")...)
	checks, code := s.doctorChecks()
	for check, want := range map[string]string{
		"client certificate": "ok: CN=alice,O=Acme, valid until", "connection": "ok: " + s.GRPCAddr + ", TLS", "server certificate": "ok: CN=controld",
		"API": "ok: ", "readiness": "", "permission": "", "clock": "", "replicas": "ok: ",
		"grpc.tls.cert_file": "ok: " + ca + "/controld.crt, CN=controld, valid until ", "grpc.tls.client_ca_file": "ok: " + ca + "/ca.pem, CN=", "github.token_file": "ok: ",
	} {
		if got, found := checks[check]; !found || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", check, got, want)
		}
	}
	if code != 0 && code != 5 { // it is not ready while its tables are missing
		t.Errorf("exit code %d: %v", code, checks)
	}
	checks, code = s.doctorChecks("--address", "127.0.0.1:1")
	if code != 5 || !strings.HasPrefix(checks["connection"], "failed: connection refused") || checks["API"] != "" {
		t.Errorf("without a controld: exit code %d, %v", code, checks)
	}
}

// idToken is an ID token of run 41 of acme/shop, with other claims in the place of some.
func (s *stage) idToken(github *local.GitHub, others map[string]any) string {
	s.Helper()
	claims := map[string]any{
		"aud": "remuda", "repository": "acme/shop", "run_id": "41", "run_attempt": "1", "event_name": "workflow_dispatch",
		"job_workflow_ref": "acme/shop/.github/workflows/ci.yml@refs/heads/main",
	}
	maps.Copy(claims, others)
	token, err := github.IDToken(s.ctx, claims)
	if err != nil {
		s.Fatal(err)
	}
	return token
}

func (s *stage) claims(token string) map[string]any {
	s.Helper()
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	claims := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if err != nil {
		s.Fatal(err)
	}
	return claims
}

// TestToken: a workflow calls with the token of a file, which is read for each call, and which counts once.
func TestToken(t *testing.T) {
	s, ca := newSecured(t)
	token := filepath.Join(t.TempDir(), "token")
	login := []string{"login", "ci", "--address", s.GRPCAddr, "--ca", filepath.Join(ca, "ca.pem"), "--token-file", token}
	s.fails(1, "no such file", login...)
	write := func(others map[string]any) {
		if err := os.WriteFile(token, []byte(s.idToken(s.GitHub, others)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(nil)
	s.must(login...)
	s.must("provision", "acme/shop/41") // the login has not used the token up
	s.fails(4, "used before", "why", "acme/shop/41")
	write(nil)
	if got := s.must("why", "acme/shop/41"); !strings.Contains(got, "asked for 1") {
		t.Errorf("why:\n%s", got)
	}
	write(nil)
	s.fails(4, "run_id: 42 is not the ID token's, which is 41", "provision", "acme/shop/42")
	write(map[string]any{"event_name": "schedule"})
	s.fails(4, "schedule", "provision", "acme/shop/41", "--count", "2")
	write(nil)
	s.must("release", "acme/shop/41", "--wait")
	s.endHosts(ca)
}

// endHosts ends what `controld serve` would leave running.
func (s *stage) endHosts(ca string) {
	s.Helper()
	s.must(s.login(ca, "alice")...)
	for _, h := range s.hosts() {
		s.must("terminate", h.ID, "--reason", "the end of the test", "--yes")
	}
}
