package workflow_test

import (
	"context"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// TestWhoMayNotProvision: each with the right answer, over the wire, and
// nothing comes of any of them.
func TestWhoMayNotProvision(t *testing.T) {
	s := newStage(t)
	for id, from := range map[string]local.Origin{
		"4001": {Event: "pull_request", HeadRepository: "mallory/shop"}, "4002": {Event: "pull_request"},
	} {
		if _, err := s.github.StartRunFrom(s.ctx, repository, id, waiting, from); err != nil {
			t.Fatal(err)
		}
	}
	workflows := s.caller(s.authority.client(nil, ""))
	other := newAuthority(t)
	for name, test := range map[string]struct {
		caller remudav1.FleetServiceClient // default: one that shows no certificate
		token  string
		asks   *remudav1.ProvisionRequest // default: a host for run 4000
		code   codes.Code
		says   string
	}{
		"no token":                     {code: codes.Unauthenticated, says: "ID token of GitHub Actions"},
		"no token at all":              {token: "let me in", code: codes.Unauthenticated, says: "no JSON Web Token"},
		"token for another run":        {token: s.claim("run_id", "9999"), code: codes.PermissionDenied, says: "run_id"},
		"token for another attempt":    {token: s.claim("run_attempt", "2"), asks: &remudav1.ProvisionRequest{Repository: repository, RunId: "4000", RunAttempt: proto.Int32(1)}, code: codes.PermissionDenied, says: "run_attempt"},
		"token for another repository": {token: s.token(with(s.rightClaims(), "repository", "acme/other", "repository_id", "1")), code: codes.PermissionDenied},
		"repository without a rule":    {token: s.token(with(s.rightClaims(), "repository", "acme/other", "repository_id", "1")), asks: &remudav1.ProvisionRequest{Repository: "acme/other", RunId: "4000"}, code: codes.PermissionDenied, says: "has no rule"},
		"renamed repository":           {token: s.claim("repository", "acme/renamed"), asks: &remudav1.ProvisionRequest{Repository: "acme/renamed", RunId: "4000"}, code: codes.PermissionDenied, says: "acme/shop"},
		"taken name":                   {token: s.claim("repository_id", "1"), code: codes.PermissionDenied, says: "has the id 1"},
		"wrong audience":               {token: s.claim("aud", "https://github.com/acme"), code: codes.Unauthenticated, says: "audience"},
		"wrong issuer":                 {token: s.claim("iss", "https://token.actions.githubusercontent.com"), code: codes.Unauthenticated, says: "issuer"},
		"expired":                      {token: s.claim("exp", time.Now().Add(-2*time.Minute).Unix()), code: codes.Unauthenticated, says: "expired"},
		"not yet good":                 {token: s.claim("nbf", time.Now().Add(2*time.Minute).Unix()), code: codes.Unauthenticated, says: "not good before"},
		"event that has no rule":       {token: s.claim("event_name", "schedule"), code: codes.PermissionDenied, says: "schedule"},
		"workflow that has no rule":    {token: s.claim("job_workflow_ref", "acme/other/.github/workflows/ci.yml@refs/heads/main"), code: codes.PermissionDenied, says: "acme/other"},
		"shown before":                 {token: s.spent(workflows), code: codes.Unauthenticated, says: "used before"},
		"alg none":                     {token: s.unsigned(), code: codes.Unauthenticated, says: "not signed"},
		"alg HS256":                    {token: s.signedWithPublicKey(), code: codes.Unauthenticated, says: "RS256"},
		"altered":                      {token: s.altered(), code: codes.Unauthenticated, says: "signature"},
		"run of a fork":                {token: s.token(with(s.rightClaims(), "event_name", "pull_request", "run_id", "4001")), asks: &remudav1.ProvisionRequest{Repository: repository, RunId: "4001"}, code: codes.PermissionDenied, says: "fork"},
		// It gets no connection, and which error it sees depends on its timing.
		"certificate of another CA":  {caller: s.caller(s.authority.client(other, "alice")), code: codes.Unavailable},
		"certificate without a role": {caller: s.caller(s.authority.client(s.authority, "mallory")), code: codes.PermissionDenied, says: "CN=mallory"},
		"viewer":                     {caller: s.caller(s.authority.client(s.authority, "dashboard")), code: codes.PermissionDenied, says: "viewer"},
	} {
		t.Run(name, func(t *testing.T) {
			caller := test.caller
			if caller == nil {
				caller = workflows
			}
			asks := test.asks
			if asks == nil {
				asks = &remudav1.ProvisionRequest{Repository: repository, RunId: "4000"}
			}
			_, err := caller.Provision(s.bearing(test.token), asks)
			if got := status.Convert(err); got.Code() != test.code || !strings.Contains(got.Message(), test.says) {
				t.Errorf("%s: %s; want %s with %q", got.Code(), got.Message(), test.code, test.says)
			}
		})
	}
	s.nothingProvisioned()

	// The same calls with what they lack.
	for runID, token := range map[string]string{
		"4000": s.token(s.rightClaims()),
		"4002": s.token(with(s.rightClaims(), "event_name", "pull_request", "run_id", "4002")),
	} {
		got, err := workflows.Provision(s.bearing(token), &remudav1.ProvisionRequest{Repository: repository, RunId: runID})
		if err != nil || len(got.GetInstances()) != 1 {
			t.Errorf("the right token for run %s: %d hosts, %v", runID, len(got.GetInstances()), err)
		}
	}
	s.noTokenIsIn(s.log.String())
}

// waiting is a workflow whose job waits for a runner that never comes.
const waiting = "on: push\njobs:\n  work:\n    runs-on: none-has-this\n    steps: [{run: 'true'}]\n"

// nothingProvisioned: no host is or was there, and GitHub was asked for none.
func (s *stage) nothingProvisioned() {
	s.Helper()
	for _, states := range [][]remudav1.State{nil, {remudav1.State_STATE_TERMINATED}} {
		got, err := s.admin.ListInstances(s.ctx, &remudav1.ListInstancesRequest{States: states})
		if err != nil || len(got.GetInstances()) > 0 {
			s.Errorf("hosts: %v %v", got.GetInstances(), err)
		}
	}
	machines, err := filepath.Glob(filepath.Join(s.dir, "*", "hosts", "*")) // of controld serve, or of controld dev
	if err != nil || len(machines) > 0 {
		s.Errorf("machines: %v %v", machines, err)
	}
	calls, err := s.github.Calls(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range calls {
		if c.Method == http.MethodPost && c.OfGitHub() && strings.Contains(c.Route, "/runners/") {
			s.Errorf("%d calls of %s", c.Count, c.Route)
		}
	}
}

// rightClaims are those of a token that may provision run 4000.
func (s *stage) rightClaims() map[string]any {
	return map[string]any{
		"aud": audience, "repository": repository, "run_id": "4000", "run_attempt": "1", "event_name": "workflow_dispatch",
		"ref": "refs/heads/main", "job_workflow_ref": repository + "/.github/workflows/ci.yml@refs/heads/main",
	}
}

// with returns claims with others in their place.
func with(claims map[string]any, pairs ...string) map[string]any {
	claims = maps.Clone(claims)
	for i := 0; i < len(pairs); i += 2 {
		claims[pairs[i]] = pairs[i+1]
	}
	return claims
}

// claim is a token that the issuer signed and in which one claim is wrong.
// The ids are those of the repository, whatever its name is said to be.
func (s *stage) claim(name string, value any) string {
	s.Helper()
	claims := s.claims(s.token(s.rightClaims()))
	claims[name] = value
	return s.token(claims)
}

func (s *stage) token(claims map[string]any) string {
	s.Helper()
	token, err := s.github.IDToken(s.ctx, claims)
	if err != nil {
		s.Fatal(err)
	}
	return token
}

func (s *stage) claims(token string) map[string]any {
	s.Helper()
	claims := map[string]any{}
	s.decode(strings.Split(token, ".")[1], &claims)
	return claims
}

func (s *stage) decode(part string, into any) {
	s.Helper()
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) bearing(token string) context.Context {
	if token == "" {
		return s.ctx
	}
	return metadata.AppendToOutgoingContext(s.ctx, "authorization", "Bearer "+token)
}

// spent is a token that was good for one call.
func (s *stage) spent(caller remudav1.FleetServiceClient) string {
	s.Helper()
	token := s.token(s.rightClaims())
	if _, err := caller.Release(s.bearing(token), &remudav1.ReleaseRequest{Repository: repository, RunId: "4000"}); err != nil {
		s.Fatalf("the first call with a token: %v", err)
	}
	return token
}

// unsigned is a right token with alg none (RFC 7519, section 6).
func (s *stage) unsigned() string {
	parts := strings.Split(s.token(s.rightClaims()), ".")
	return s.header(parts[0], "none") + "." + parts[1] + "."
}

// header is that of a token with another algorithm.
func (s *stage) header(part, algorithm string) string {
	s.Helper()
	header := map[string]any{}
	s.decode(part, &header)
	header["alg"] = algorithm
	text, err := json.Marshal(header)
	if err != nil {
		s.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// altered is a right token in which an attacker changed a claim.
func (s *stage) altered() string {
	s.Helper()
	parts := strings.Split(s.token(with(s.rightClaims(), "run_id", "9999")), ".")
	parts[1] = strings.Split(s.token(s.rightClaims()), ".")[1]
	return strings.Join(parts, ".")
}

// signedWithPublicKey is a token whose HMAC has the issuer's public key as its
// secret, which everybody knows.
func (s *stage) signedWithPublicKey() string {
	s.Helper()
	resp, err := http.Get(s.github.URL() + "/.well-known/jwks")
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	var set struct {
		Keys []struct{ N, E string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil || len(set.Keys) == 0 {
		s.Fatalf("keys of the issuer: %v %v", set, err)
	}
	number := func(text string) *big.Int {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			s.Fatal(err)
		}
		return new(big.Int).SetBytes(b)
	}
	der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: number(set.Keys[0].N), E: int(number(set.Keys[0].E).Int64())})
	if err != nil {
		s.Fatal(err)
	}
	parts := strings.Split(s.token(s.rightClaims()), ".")
	input := s.header(parts[0], "HS256") + "." + parts[1]
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(input))
	return input + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
