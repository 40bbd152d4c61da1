package ca_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/ca"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func initialized(t *testing.T) (dir string, files []ca.File) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "ca")
	files, err := ca.Init(dir, ca.Options{
		Name: "Test CA", Valid: 3650 * day,
		Server: ca.Request{Name: "controld", Hosts: []string{"remuda.acme.com", "10.0.0.1", "fd00::1"}, Valid: 398 * day},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	return dir, files
}

func open(t *testing.T, dir string) *ca.Authority {
	t.Helper()
	a, err := ca.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func certificate(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func pool(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(text) {
		t.Fatal("ca.pem holds no certificate")
	}
	return p
}

func TestInit(t *testing.T) {
	dir, files := initialized(t)
	var kinds []string
	for _, f := range files {
		info, err := os.Stat(f.Path)
		if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(f.Path) != dir {
			t.Errorf("%s: %v, mode %v", f.Path, err, info.Mode())
		}
		kinds = append(kinds, filepath.Base(f.Path)+": "+f.Kind+" "+f.Subject)
	}
	want := []string{"ca.pem: authority CN=Test CA", "ca.key: private key ", "controld.crt: server certificate CN=controld", "controld.key: private key "}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
		t.Errorf("beside the directory: %v %v", entries, err)
	}
	server := certificate(t, dir, "controld")
	for _, name := range []string{"remuda.acme.com", "10.0.0.1", "fd00::1"} {
		if _, err := server.Verify(x509.VerifyOptions{DNSName: name, Roots: pool(t, dir), CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(server.IPAddresses) != 2 || !server.IPAddresses[0].Equal(net.IPv4(10, 0, 0, 1)) {
		t.Errorf("addresses %v", server.IPAddresses)
	}
}

// TestInitReplacesNothing: an authority that is there, and one that cannot be made.
func TestInitReplacesNothing(t *testing.T) {
	dir, _ := initialized(t)
	before, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	server := ca.Request{Name: "controld", Hosts: []string{"localhost"}, Valid: day}
	if _, err := ca.Init(dir, ca.Options{Name: "other", Valid: day, Server: server}, now); !errors.Is(err, ca.ErrExists) {
		t.Errorf("got %v", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "ca.key")); err != nil || string(after) != string(before) {
		t.Errorf("the key has changed (%v)", err)
	}
	server.Valid = 2 * day
	parent := t.TempDir()
	if _, err := ca.Init(filepath.Join(parent, "ca"), ca.Options{Name: "short", Valid: day, Server: server}, now); err == nil {
		t.Error("a certificate may not outlive its authority")
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("half an authority is left: %v %v", entries, err)
	}
	if err := os.Mkdir(filepath.Join(parent, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	server.Valid = day
	if _, err := ca.Init(filepath.Join(parent, "empty"), ca.Options{Name: "fits", Valid: day, Server: server}, now); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
}

func TestIssue(t *testing.T) {
	dir, _ := initialized(t)
	a := open(t, dir)
	alice := ca.Request{Name: "alice", Organization: "Acme Inc.", Valid: 90 * day}
	to := filepath.Join(t.TempDir(), "alice")
	files, err := a.Issue(to, alice, now)
	if err != nil {
		t.Fatal(err)
	}
	if files[0].Subject != "CN=alice,O=Acme Inc." || !files[0].NotAfter.Equal(now.Add(90*day)) {
		t.Errorf("got %+v", files[0])
	}
	first := certificate(t, to, "alice")
	verify := func(use x509.ExtKeyUsage, at time.Time) error {
		_, err := first.Verify(x509.VerifyOptions{Roots: pool(t, dir), CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use}})
		return err
	}
	if err := verify(x509.ExtKeyUsageClientAuth, now); err != nil {
		t.Error(err)
	}
	if verify(x509.ExtKeyUsageServerAuth, now) == nil || verify(x509.ExtKeyUsageClientAuth, now.Add(91*day)) == nil {
		t.Error("it is good for a server, or after its end")
	}
	if _, err := a.Issue(to, alice, now); !errors.Is(err, ca.ErrExists) {
		t.Errorf("a second one: %v", err)
	}
	if got := certificate(t, to, "alice"); !got.Equal(first) {
		t.Error("it was replaced")
	}
	alice.Replace = true
	if _, err := a.Issue(to, alice, now); err != nil || certificate(t, to, "alice").Equal(first) {
		t.Errorf("it was not replaced: %v", err)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]ca.Request{
		"no name":          {Valid: day},
		"a path":           {Name: "../alice", Valid: day},
		"a subject":        {Name: "alice,O=Acme", Valid: day},
		"too long":         {Name: strings.Repeat("a", 65), Valid: day},
		"the authority":    {Name: "ca", Valid: day},
		"an organization":  {Name: "alice", Organization: "Acme,OU=x", Valid: day},
		"no time":          {Name: "alice"},
		"no DNS name":      {Name: "controld", Hosts: []string{"remuda acme"}, Valid: day},
		"a URL":            {Name: "controld", Hosts: []string{"https://remuda.acme.com"}, Valid: day},
		"a name with port": {Name: "controld", Hosts: []string{"remuda.acme.com:7443"}, Valid: day},
	} {
		if err := r.Validate(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestOpenRefuses are directories without a whole authority. No error quotes a key.
func TestOpenRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, dir string)
		says  string
	}{
		"nothing": {func(t *testing.T, dir string) { remove(t, dir, "ca.pem") }, "ca.pem"},
		"no key":  {func(t *testing.T, dir string) { remove(t, dir, "ca.key") }, "ca.key"},
		"no PEM":  {func(t *testing.T, dir string) { put(t, dir, "ca.key", "secret-text") }, "ca.key holds no PRIVATE KEY in PEM"},
		"a broken key": {func(t *testing.T, dir string) {
			put(t, dir, "ca.key", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n")
		}, "ca.key holds no key"},
		"another's key": {func(t *testing.T, dir string) { rename(t, dir, "controld.key", "ca.key") }, "is not that of the certificate"},
		"no authority": {func(t *testing.T, dir string) {
			rename(t, dir, "controld.key", "ca.key")
			rename(t, dir, "controld.crt", "ca.pem")
		}, "not that of an authority"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := initialized(t)
			test.spoil(t, dir)
			if _, err := ca.Open(dir); err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}
