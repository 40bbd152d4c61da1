package githubsim_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v62/github"
)

// testApp is a GitHub App of a test.
type testApp struct {
	s        *standin
	id       int64
	clientID string
	key      *rsa.PrivateKey
	on       map[string]int64 // installation by account
}

// appKey is one key for all tests: they take long to make.
var appKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func (s *standin) registerApp(id int64, owners ...string) *testApp {
	s.t.Helper()
	a := &testApp{s: s, id: id, key: appKey(), on: map[string]int64{}}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(a.key)})
	var got struct {
		ClientID      string `json:"client_id"`
		Installations []struct {
			ID    int64
			Owner string
		}
	}
	s.call(200, "PUT", "/_standin/apps", map[string]any{"app_id": id, "private_key": string(text), "owners": owners}, &got)
	a.clientID = got.ClientID
	for _, in := range got.Installations {
		a.on[in.Owner] = in.ID
	}
	return a
}

// token is a JSON web token of the app; changed are claims or, with the name alg, the algorithm that are not as they should be.
func (a *testApp) token(changed map[string]any) string {
	now := a.s.clock.Now()
	claims := map[string]any{"iss": fmt.Sprint(a.id), "iat": now.Add(-time.Minute).Unix(), "exp": now.Add(9 * time.Minute).Unix()}
	header := map[string]any{"alg": "RS256", "typ": "JWT"}
	for name, value := range changed {
		if name == "alg" {
			header[name] = value
			continue
		}
		claims[name] = value
	}
	var parts []string
	for _, v := range []any{header, claims} {
		text, err := json.Marshal(v)
		if err != nil {
			a.s.t.Fatal(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, ".")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		a.s.t.Fatal(err)
	}
	return strings.Join(append(parts, base64.RawURLEncoding.EncodeToString(signature)), ".")
}

func (a *testApp) auth() http.Header { return http.Header{"Authorization": {"Bearer " + a.token(nil)}} }

func (s *standin) clientWith(token string) *github.Client {
	s.t.Helper()
	c, err := github.NewClient(s.client).WithAuthToken(token).WithEnterpriseURLs(s.url, s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func TestAppFindsItsInstallations(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	a := s.registerApp(12, "acme", "other")
	for name, issuer := range map[string]any{"id": "12", "id as a number": 12, "client id": a.clientID} {
		app, _, err := s.clientWith(a.token(map[string]any{"iss": issuer})).Apps.Get(ctx, "")
		if err != nil || app.GetID() != 12 {
			t.Errorf("app by %s: %v, %v", name, app, err)
		}
	}
	c := s.clientWith(a.token(nil))
	for place, find := range map[string]func() (*github.Installation, *github.Response, error){
		"repository": func() (*github.Installation, *github.Response, error) {
			return c.Apps.FindRepositoryInstallation(ctx, "acme", "app")
		},
		"organisation": func() (*github.Installation, *github.Response, error) {
			return c.Apps.FindOrganizationInstallation(ctx, "ACME")
		},
	} {
		if in, _, err := find(); err != nil || in.GetID() != a.on["acme"] || in.GetAccount().GetLogin() != "acme" {
			t.Errorf("installation of the %s: %v, %v", place, in, err)
		}
	}
	if _, _, err := c.Apps.FindRepositoryInstallation(ctx, "stranger", "app"); statusOf(err) != 404 {
		t.Errorf("not installed: %v", err)
	}
	all, _, err := c.Apps.ListInstallations(ctx, nil)
	if err != nil || len(all) != 2 {
		t.Errorf("all: %v, %v", all, err)
	}
	a.s.registerApp(12, "other") // not on acme any more
	if _, _, err := c.Apps.FindOrganizationInstallation(ctx, "acme"); statusOf(err) != 404 {
		t.Errorf("uninstalled: %v", err)
	}
	if in, _, err := c.Apps.FindOrganizationInstallation(ctx, "other"); err != nil || in.GetID() != a.on["other"] {
		t.Errorf("still installed: %v, %v", in, err)
	}
}

func TestAppTokensAreRefused(t *testing.T) {
	s := start(t)
	a := s.registerApp(12, "acme")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	stranger := &testApp{s: s, id: 12, key: key}
	now := s.clock.Now()
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"another key":     {stranger.token(nil), 401},
		"cut short":       {a.token(nil)[:200], 401},
		"no algorithm":    {a.token(map[string]any{"alg": "none"}), 401},
		"HMAC":            {a.token(map[string]any{"alg": "HS256"}), 401},
		"unknown app":     {a.token(map[string]any{"iss": "13"}), 404},
		"expired":         {a.token(map[string]any{"exp": now.Unix()}), 401},
		"too long":        {a.token(map[string]any{"exp": now.Add(12 * time.Minute).Unix()}), 401},
		"of the future":   {a.token(map[string]any{"iat": now.Add(2 * time.Minute).Unix()}), 401},
		"not issued":      {a.token(map[string]any{"iat": 0}), 401},
		"no token at all": {"x.y.z", 401},
		"a person's":      {"test", 401},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.callWith(http.Header{"Authorization": {"Bearer " + tc.token}}, tc.want, "GET", "/app", nil, nil)
		})
	}
	s.t = t
	s.callWith(a.auth(), 401, "GET", "/repos/acme/app/actions/runners", nil, nil)
}

func TestInstallationTokens(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	a := s.registerApp(12, "acme")
	c := s.clientWith(a.token(nil))
	token, _, err := c.Apps.CreateInstallationToken(ctx, a.on["acme"], nil)
	if err != nil || !token.GetExpiresAt().Time.Equal(s.clock.Now().Add(time.Hour)) {
		t.Fatalf("%v, %v", token, err)
	}
	if _, _, err := c.Apps.CreateInstallationToken(ctx, 99, nil); statusOf(err) != 404 {
		t.Errorf("of no installation: %v", err)
	}
	_, _, err = c.Apps.CreateInstallationToken(ctx, a.on["acme"], &github.InstallationTokenOptions{Permissions: &github.InstallationPermissions{Issues: github.String("write")}})
	if statusOf(err) != 422 {
		t.Errorf("of a permission that the app has not: %v", err)
	}
	other := s.registerApp(13, "acme")
	if _, _, err := s.clientWith(other.token(nil)).Apps.CreateInstallationToken(ctx, a.on["acme"], nil); statusOf(err) != 404 {
		t.Errorf("of another app's installation: %v", err)
	}
	narrow, _, err := c.Apps.CreateInstallationToken(ctx, a.on["acme"], &github.InstallationTokenOptions{Repositories: []string{"app"}})
	if err != nil {
		t.Fatal(err)
	}
	sees := func(token, path string) int {
		req, err := http.NewRequest("GET", s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	got := map[string][]int{}
	for _, path := range []string{"/repos/acme/app/actions/runners", "/repos/acme/web/actions/runners", "/orgs/acme/actions/runners", "/orgs/other/actions/runners", "/app"} {
		got[path] = []int{sees(token.GetToken(), path), sees(narrow.GetToken(), path)}
	}
	want := map[string][]int{
		"/repos/acme/app/actions/runners": {200, 200}, "/repos/acme/web/actions/runners": {200, 404}, "/orgs/acme/actions/runners": {200, 200},
		"/orgs/other/actions/runners": {404, 404}, "/app": {401, 401},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what the tokens see: %s", d)
	}
	s.stop()
	s.up()
	if got := sees(token.GetToken(), "/orgs/acme/actions/runners"); got != 200 {
		t.Errorf("after a restart: %d", got)
	}
	s.clock.advance(time.Hour)
	if got := sees(token.GetToken(), "/orgs/acme/actions/runners"); got != 401 {
		t.Errorf("expired: %d", got)
	}
}

func TestAppsAreRefused(t *testing.T) {
	s := start(t)
	key := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&appKey().PublicKey)}))
	for name, body := range map[string]map[string]any{
		"no id":    {"public_key": key},
		"no key":   {"app_id": 1},
		"no owner": {"app_id": 1, "public_key": key, "owners": []string{"acme/app"}},
		"no PEM":   {"app_id": 1, "public_key": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.call(422, "PUT", "/_standin/apps", body, nil)
		})
	}
	s.t = t
	s.call(200, "PUT", "/_standin/apps", map[string]any{"app_id": 1, "public_key": key}, nil)
}
