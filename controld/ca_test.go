package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/ca"
	standinrunner "github.com/remuda-ci/remuda/internal/githubsim/runner"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// authority makes one with controld ca init, for 127.0.0.1, and returns its directory.
func authority(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ca")
	if got := controld(t, "ca", "init", "--dir", dir, "--host", "localhost,127.0.0.1"); got.code != 0 {
		t.Fatal(got)
	}
	return dir
}

func issue(t *testing.T, args ...string) {
	t.Helper()
	if got := controld(t, append([]string{"ca", "issue"}, args...)...); got.code != 0 {
		t.Fatal(got)
	}
}

// TestPrivateCA: a controld that serves with what ca init and ca issue write takes its operators and refuses others.
func TestPrivateCA(t *testing.T) {
	t.Parallel()
	dir, theirs := authority(t), authority(t)
	issue(t, "--dir", dir, "--organization", "Acme", "alice")
	issue(t, "--dir", dir, "stranger")
	issue(t, "--dir", theirs, "--organization", "Acme", "alice")
	expired(t, dir)
	d := startDaemon(t, "serve", "--config", secureConfig(t, dir))
	defer d.stop()
	for name, test := range map[string]struct {
		trusts, cert string
		want         codes.Code
	}{
		"an operator":              {dir, filepath.Join(dir, "alice"), codes.NotFound},
		"one without a role":       {dir, filepath.Join(dir, "stranger"), codes.PermissionDenied},
		"of another authority":     {dir, filepath.Join(theirs, "alice"), codes.Unavailable},
		"expired":                  {dir, filepath.Join(dir, "old"), codes.Unavailable},
		"controld's own":           {dir, filepath.Join(dir, "controld"), codes.Unavailable},
		"none":                     {dir, "", codes.Unauthenticated},
		"a caller of another's CA": {theirs, filepath.Join(dir, "alice"), codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			conn, err := grpc.NewClient(d.addrs["grpc"], grpc.WithTransportCredentials(credentials.NewTLS(shows(t, test.trusts, test.cert))))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = remudav1.NewFleetServiceClient(conn).GetInstance(ctx, &remudav1.GetInstanceRequest{InstanceId: "i-none"})
			if status.Code(err) != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// expired issues old, which ended an hour ago.
func expired(t *testing.T, dir string) {
	t.Helper()
	a, err := ca.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Issue(dir, ca.Request{Name: "old", Organization: "Acme", Valid: time.Hour}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// shows is a client's TLS, with a certificate that is shown whichever authorities the server asks for.
func shows(t *testing.T, trusts, cert string) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(trusts, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(text)
	if cert == "" {
		return config
	}
	pair, err := tls.LoadX509KeyPair(cert+".crt", cert+".key")
	if err != nil {
		t.Fatal(err)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return config
}

// secureConfig is a configuration of one machine, with the TLS of an authority.
func secureConfig(t *testing.T, authority string) string {
	t.Helper()
	dir := t.TempDir()
	if err := standinrunner.LayOut(filepath.Join(dir, "runner"), "/bin/true"); err != nil {
		t.Fatal(err)
	}
	return write(t, "controld.yaml", fmt.Sprintf(`
grpc: {addr: "127.0.0.1:0", tls: {cert_file: %[2]s/controld.crt, key_file: %[2]s/controld.key, client_ca_file: %[2]s/ca.pem}}
http: {addr: "127.0.0.1:0"}
callers: {operators: [{subject: "CN=alice,O=Acme", role: viewer}, {subject: "CN=old,O=Acme", role: viewer}, {subject: "CN=controld", role: viewer}]}
store: {sqlite: {path: %[1]s/remuda.db}}
compute: {process: {directory: %[1]s/cloud, agentd: /bin/true, runner: %[1]s/runner}}
github: {url: "http://127.0.0.1:1/api/v3", token_file: %[3]s}
`, dir, authority, write(t, "token", "any\n")))
}

// TestCAPrints: what is written is said, for people and for programs, and nothing of a key.
func TestCAPrints(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	got := controld(t, "ca", "init", "--dir", dir, "--host", "remuda.acme.com", "--organization", "Acme")
	lines := strings.Split(got.stdout, "\n")
	if got.code != 0 || len(lines) != 6 || strings.Index(lines[0], "VALID") != strings.Index(lines[2], "- ") || strings.Contains(got.stdout, "BEGIN") {
		t.Errorf("got %+v", got)
	}
	got = controld(t, "ca", "issue", "--dir", dir, "--days", "30", "--organization", "Acme", "--output", "json", "alice")
	var said struct {
		Files []struct {
			Path, Kind, Subject string
			NotAfter            time.Time `json:"not_after"`
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &said); err != nil || len(said.Files) != 2 {
		t.Fatal(got, err)
	}
	crt := said.Files[0]
	if left := time.Until(crt.NotAfter); crt.Path != filepath.Join(dir, "alice.crt") || crt.Subject != "CN=alice,O=Acme" || left > 30*day || left < 29*day {
		t.Errorf("got %+v", crt)
	}
}

// TestCAWritesElsewhere: a certificate may be written to another directory than that of the authority.
func TestCAWritesElsewhere(t *testing.T) {
	dir, to := authority(t), t.TempDir()
	issue(t, "--dir", dir, "--to", to, "--organization", "Acme", "alice")
	for name, there := range map[string]bool{filepath.Join(to, "alice.crt"): true, filepath.Join(to, "alice.key"): true, filepath.Join(dir, "alice.crt"): false} {
		if _, err := os.Stat(name); (err == nil) != there {
			t.Errorf("%s: %v, want there %v", name, err, there)
		}
	}
}

// TestCADays: a certificate of an operator and one of a server are valid for as long as the help says, and the first one of controld for as
// long as the authority at most.
func TestCADays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	if got := controld(t, "ca", "init", "--dir", dir, "--host", "localhost", "--days", "500", "--server-days", "500"); got.code != 0 {
		t.Fatal(got)
	}
	for name, test := range map[string]struct {
		args []string
		days time.Duration
	}{"alice": {nil, clientDays}, "controld-2": {[]string{"--host", "localhost"}, serverDays}} {
		got := controld(t, append(append([]string{"ca", "issue", "--dir", dir, "--output", "json"}, test.args...), name)...)
		var said struct {
			Files []struct {
				NotAfter time.Time `json:"not_after"`
			}
		}
		if err := json.Unmarshal([]byte(got.stdout), &said); err != nil || len(said.Files) == 0 {
			t.Fatal(got, err)
		}
		if left := time.Until(said.Files[0].NotAfter); left > test.days*day || left < (test.days-1)*day {
			t.Errorf("%s is valid for %s, want %d days", name, left, test.days)
		}
	}
}

// TestCARefuses are calls that write nothing.
func TestCARefuses(t *testing.T) {
	dir := authority(t)
	empty := t.TempDir()
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"init twice":           {[]string{"init", "--dir", dir, "--host", "localhost"}, 1, "an authority is not replaced"},
		"init without hosts":   {[]string{"init", "--dir", empty}, 2, "--host is required"},
		"init without dir":     {[]string{"init", "--host", "localhost"}, 2, "--dir is required"},
		"init of a bad host":   {[]string{"init", "--dir", empty, "--host", "localhost:7443"}, 2, "neither a DNS name nor an IP address"},
		"init in no directory": {[]string{"init", "--dir", empty + "/none/ca", "--host", "localhost"}, 1, "no such file or directory"},
		"a server too long":    {[]string{"init", "--dir", empty, "--host", "localhost", "--days", "10"}, 2, "--server-days 398 is not from 1 to the 10"},
		"issue without name":   {[]string{"issue", "--dir", dir}, 2, "ca issue needs"},
		"issue without CA":     {[]string{"issue", "--dir", empty, "alice"}, 1, "ca.pem"},
		"issue of a path":      {[]string{"issue", "--dir", dir, "../alice"}, 2, "letters, digits"},
		"issue for too long":   {[]string{"issue", "--dir", dir, "--days", "4000", "alice"}, 1, "longer than its authority"},
		"issue for no day":     {[]string{"issue", "--dir", dir, "--days", "-1", "alice"}, 2, "--days -1"},
		"issue twice":          {[]string{"issue", "--dir", dir, "--host", "localhost", "controld"}, 1, "--replace renews it"},
		"another output":       {[]string{"issue", "--dir", dir, "--output", "yaml", "alice"}, 2, "neither table nor json"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := controld(t, append([]string{"ca"}, test.args...)...); got.code != test.code || !strings.Contains(got.stderr, test.says) {
				t.Errorf("got %+v, want code %d, saying %q", got, test.code, test.says)
			}
		})
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("something was written: %v %v", entries, err)
	}
}
