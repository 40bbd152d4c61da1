package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/dev"
	"github.com/remuda-ci/remuda/internal/instrument"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

func scrape(m *telemetry.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

type failingStore struct{ store.Backend }

func (failingStore) Get(context.Context, *store.Kind, store.Key) (store.Row, error) {
	return nil, &lifecycle.UnavailableError{What: "read lease", Err: errors.New("disk gone")}
}

func TestCallsAreCountedByResult(t *testing.T) {
	metrics := telemetry.NewMetrics()
	counted := store.New(failingStore{}).Observed(instrument.Calls{Metrics: metrics, Port: "store"}.Called)
	if err := (&readiness{store: counted}).check(t.Context()); err == nil || !strings.Contains(err.Error(), "disk gone") {
		t.Errorf("a store that is away is said to be ready: %v", err)
	}
	if want := `remuda_calls_total{operation="store.lease",result="unavailable"} 1`; !strings.Contains(scrape(metrics), want) {
		t.Errorf("no %s in\n%s", want, scrape(metrics))
	}
}

func TestAgentConfig(t *testing.T) {
	c := config.Default()
	c.Pools["build"] = config.Pool{
		PreRunner: "/etc/remuda/pre.sh",
		Caches:    []config.Cache{{Name: "go", Paths: []string{"~/go/pkg/mod"}, SizeMiB: 4096, From: []string{"main"}}},
	}
	got, err := agentConfig(c, lifecycle.Machine{InstanceID: "i-1", HostKey: "role:i-1", Pool: "build"}, "/hosts/i-1")
	if err != nil {
		t.Fatal(err)
	}
	want := `instance_id: i-1
host_key: role:i-1
directory: /hosts/i-1/host
store:
    sqlite:
        path: /var/lib/remuda/remuda.db
runner:
    distribution: /opt/actions-runner
pre_runner:
    script: /etc/remuda/pre.sh
caches:
    - name: go
      paths:
        - ~/go/pkg/mod
      size_mib: 4096
      scope: repository
      keep: 168h0m0s
log_level: info
log_format: text
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("agentd.yaml (-want +got):\n%s", diff)
	}
}

// TestDevWins: dev takes any configuration that is right, and what is its own
// business stays its own.
func TestDevWins(t *testing.T) {
	example, err := os.ReadFile("../examples/controld.yaml")
	if err != nil {
		t.Fatal(err)
	}
	withEnv := strings.NewReplacer("  token_file: /etc/remuda/credentials/github-token", "  # token_file:", "  # token_env:", "  token_env:").Replace(string(example))
	withApps := strings.NewReplacer("  token_file: /etc/remuda/credentials/github-token", "  apps: [{app_id: 1, private_key_file: /k}]").Replace(string(example))
	ignored := func(credential string) []string {
		return []string{
			"grpc", "http", "page", "store", "compute.process.directory", "compute.process.agentd", "compute.process.runner",
			"github.url", credential, "callers.issuer",
		}
	}
	for name, test := range map[string]struct {
		text    string
		ignored []string
	}{
		"token file": {string(example), ignored("github.token_file")},
		"token env":  {withEnv, ignored("github.token_env")},
		"apps":       {withApps, ignored("github.apps")},
		"empty":      {},
	} {
		t.Run(name, func(t *testing.T) {
			text := test.text
			o := dev.Options{GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", StateDir: t.TempDir(), Config: write(t, "controld.yaml", text)}
			c, err := devConfiguration(&o, dev.Programs{Agentd: "/bin/agentd"})
			if err != nil {
				t.Fatal(err)
			}
			want := config.Default()
			if text != "" {
				if want, err = config.Parse("example", []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			want.ForDev, want.Ignored = true, test.ignored
			want.Page = &config.Page{}
			want.GRPC = config.GRPC{Addr: "127.0.0.1:0"}
			want.HTTP.Addr = "127.0.0.1:0"
			want.Store.SQLite.Path = filepath.Join(o.StateDir, "remuda.db")
			want.Compute.Process.Directory = o.StateDir
			want.Compute.Process.Agentd = "/bin/agentd"
			want.Compute.Process.Runner = filepath.Join(o.StateDir, "runner")
			want.GitHub.URL, want.GitHub.TokenFile, want.GitHub.TokenEnv, want.GitHub.Apps = "", filepath.Join(o.StateDir, "github-token"), "", nil
			if diff := cmp.Diff(want, c); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDevTellsWhatIsWrongWithAFile(t *testing.T) {
	o := dev.Options{StateDir: t.TempDir(), Config: write(t, "controld.yaml", "pools:\n  default:\n    reuze: none\n")}
	_, err := devConfiguration(&o, dev.Programs{})
	if exitCode(err) != exitConfiguration || !strings.Contains(err.Error(), "controld.yaml:3:5: pools.default.reuze: is not known; did you mean reuse?") {
		t.Errorf("got %v", err)
	}
}
