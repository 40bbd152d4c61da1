package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/inputs"
)

// appKeyPEM is a new private key of an App.
func appKeyPEM(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// TestGitHubIsReachedAsConfigured runs against an Enterprise Server with a
// certificate of its own, at organization scope and with an App.
func TestGitHubIsReachedAsConfigured(t *testing.T) {
	var calls []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.Method+" "+r.URL.Path)
		switch {
		case strings.HasSuffix(r.URL.Path, "/installation"):
			fmt.Fprint(w, `{"id":7}`)
		case r.URL.Path == "/api/v3/orgs/acme/actions/runner-groups":
			fmt.Fprint(w, `{"runner_groups":[{"id":5,"name":"builders"}]}`)
		case strings.HasSuffix(r.URL.Path, "/access_tokens"):
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"token":"ghs_x","expires_at":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339))
		default:
			w.WriteHeader(http.StatusCreated)
			files := base64.StdEncoding.EncodeToString([]byte(`{".runner":"e30="}`)) // {}
			fmt.Fprintf(w, `{"runner":{"id":1},"encoded_jit_config":%q}`, files)
		}
	}))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	key := appKeyPEM(t)
	t.Setenv("REMUDA_TEST_APP_KEY", key)
	for name, app := range map[string]config.GitHubApp{
		"file":     {AppID: 1, PrivateKeyFile: write(t, "app.pem", key)},
		"variable": {ClientID: "Iv23x", PrivateKeyEnv: "REMUDA_TEST_APP_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			c := config.Default()
			c.GitHub = config.GitHub{
				URL: server.URL + "/api/v3", CAFile: write(t, "ca.crt", string(authority)),
				Scope: config.ScopeOrganization, RunnerGroup: "builders", Apps: []config.GitHubApp{app},
			}
			in, err := inputs.ForReading("test", c)
			if err != nil {
				t.Fatal(err)
			}
			client, err := newHub(c, in, nil, hclog.NewNullLogger())
			if err != nil {
				t.Fatal(err)
			}
			r, id, err := client.JIT(t.Context(), "acme/app", "x", []string{"l"})
			if err != nil || id != 1 || r.URL != server.URL+"/acme" {
				t.Errorf("got %v, %d, %v", r, id, err)
			}
			want := []string{
				"GET /api/v3/orgs/acme/installation", "POST /api/v3/app/installations/7/access_tokens",
				"GET /api/v3/orgs/acme/actions/runner-groups", "POST /api/v3/orgs/acme/actions/runners/generate-jitconfig",
			}
			if d := cmp.Diff(want, calls); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWhatGitHubNeedsIsCheckedAtStart(t *testing.T) {
	key := appKeyPEM(t)
	half := write(t, "half.pem", key[:len(key)/2])
	t.Setenv("REMUDA_TEST_HALF", key[:len(key)/2])
	empty, none := write(t, "empty", ""), filepath.Join(t.TempDir(), "none")
	large := write(t, "large", "")
	if err := os.Truncate(large, 2<<20); err != nil {
		t.Fatal(err)
	}
	apps := func(a ...config.GitHubApp) config.GitHub { return config.GitHub{Apps: a} }
	for name, test := range map[string]struct {
		config config.GitHub
		want   string
	}{
		"no authority":        {config.GitHub{CAFile: none}, "github.ca_file: " + none + " does not exist"},
		"authority that none": {config.GitHub{CAFile: half}, "github.ca_file: " + half + " holds no certificate"},
		"no key":              {apps(config.GitHubApp{AppID: 1, PrivateKeyFile: none}), "github.apps[0].private_key_file: " + none + " does not exist"},
		"empty key":           {apps(config.GitHubApp{AppID: 1, PrivateKeyFile: empty}), "github.apps[0].private_key_file: " + empty + " is empty"},
		"large key":           {apps(config.GitHubApp{AppID: 1, PrivateKeyFile: large}), "is too large for the private key"},
		"half a key":          {apps(config.GitHubApp{AppID: 3, PrivateKeyFile: half}), "github.apps[0].private_key_file: " + half + ": App 3: the private key is not an RSA key in PEM form"},
		"half in a variable":  {apps(config.GitHubApp{ClientID: "Iv1", PrivateKeyEnv: "REMUDA_TEST_HALF"}), "github.apps[0].private_key_env: the variable \"REMUDA_TEST_HALF\": App Iv1: the private key is not an RSA key"},
		"no variable":         {apps(config.GitHubApp{AppID: 1, PrivateKeyEnv: "REMUDA_TEST_NO_SUCH_KEY"}), "github.apps[0].private_key_env: the variable REMUDA_TEST_NO_SUCH_KEY is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.URL = "https://ghes.acme.com/api/v3"
			c := config.Default()
			c.GitHub = test.config
			_, err := inputs.ForReading("controld.yaml", c)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %s", err, test.want)
			}
			if strings.Contains(err.Error(), key[40:60]) || strings.Contains(err.Error(), "BEGIN RSA") {
				t.Errorf("the key shows in %v", err)
			}
		})
	}
}
