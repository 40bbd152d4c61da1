package inputs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/inputs"
)

// place is a directory with a configuration and what it names.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) place {
	p := place{t, t.TempDir()}
	p.write("token", "word\n")
	p.write("config.sh", "")
	return p
}

func (p place) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// load reads a configuration of a fleet on this machine with more sections.
func (p place) load(more string) (*inputs.Inputs, error) {
	p.t.Helper()
	text := fmt.Sprintf("store: {sqlite: {path: %[1]s/remuda.db}}\ncompute: {process: {directory: %[1]s/hosts, runner: %[1]s, agentd: /bin/true}}\n", p.dir) + more
	if !strings.Contains(text, "github:") {
		text += "github: {token_file: " + p.dir + "/token}\n"
	}
	_, in, err := inputs.Load(p.write("controld.yaml", text))
	return in, err
}

// certificate writes a certificate of its own and its key.
func (p place) certificate(change func(*x509.Certificate)) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "controld"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		DNSNames: []string{"fleet.acme.com"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		p.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	p.write("tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
}

// TestCertificatesThatCallersWillRefuse are warned of: controld starts, since the fleet must go on and a new one is taken up as it runs.
func TestCertificatesThatCallersWillRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*x509.Certificate)
		addr   string
		want   string // empty: no warning
	}{
		"good":           {nil, "0.0.0.0:0", ""},
		"expired":        {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "0.0.0.0:0", "(CN=controld) has expired on "},
		"soon":           {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(13 * 24 * time.Hour) }, "0.0.0.0:0", "(CN=controld) expires on "},
		"not yet":        {func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }, "0.0.0.0:0", "is valid only from "},
		"no name":        {func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, nil }, "0.0.0.0:0", "is for no DNS name and no IP address"},
		"another name":   {nil, "192.0.2.7:0", "is for fleet.acme.com, 192.0.2.1 and not for 192.0.2.7, on which controld listens"},
		"its address":    {nil, "192.0.2.1:0", ""},
		"loopback":       {nil, "127.0.0.1:0", ""},
		"not for server": {func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, "0.0.0.0:0", "is not for servers"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.certificate(test.change)
			in, err := p.load(fmt.Sprintf("grpc: {addr: \"%s\", tls: {cert_file: %[2]s/tls.crt, key_file: %[2]s/tls.key}}\n", test.addr, p.dir))
			if err != nil {
				t.Fatal(err)
			}
			if in.TLS == nil {
				t.Error("there is no TLS")
			}
			got := strings.Join(in.Warnings, "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) || test.want != "" && !strings.HasPrefix(got, "grpc.tls.cert_file: "+p.dir+"/tls.crt ") {
				t.Errorf("the warnings are %q, want %q", got, test.want)
			}
		})
	}
}

// TestCopiesOfCredentials: in the unit the copies are read that systemd made, and an error names the file itself.
func TestCopiesOfCredentials(t *testing.T) {
	p := newPlace(t)
	p.write("remuda_github-token", "copied\n")
	t.Setenv("CREDENTIALS_DIRECTORY", p.dir)
	in, err := p.load("github: {token_file: /etc/remuda/credentials/github-token}\n")
	if err != nil {
		t.Fatal(err)
	}
	if token, err := in.Token(t.Context()); err != nil || token.Reveal() != "copied" {
		t.Errorf("the token is %q, %v", token.Reveal(), err)
	}
	_, err = p.load("github: {token_file: /etc/remuda/credentials/other}\n")
	if want := "github.token_file: /etc/remuda/credentials/other was not there when systemd started the unit; write it and start the unit again"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestProblem: the sentence has what one needs to mend it. Root may read everything, so the error is given.
func TestProblem(t *testing.T) {
	p := newPlace(t)
	path := p.write("secret", "x")
	denied := &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	said := inputs.Problem(path, denied)
	for _, want := range []string{path + ": permission denied for user ", " is owned by ", " and has mode 0600; change its owner or mode, or put a secret into /etc/remuda/credentials"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
	if got, want := inputs.Problem(p.dir+"/none/x", fs.ErrNotExist), "nor does the directory "+p.dir+"/none"; !strings.Contains(got, want) {
		t.Errorf("%q does not say %q", got, want)
	}
	if got, want := inputs.Problem(path, &fs.PathError{Op: "read", Path: path, Err: fs.ErrInvalid}), path+" cannot be read: invalid argument"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
