package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	"github.com/remuda-ci/remuda/internal/server"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// authority issues certificates for one test.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.key = a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.file = a.write(name+".pem", "CERTIFICATE", der)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue makes a certificate for 127.0.0.1 and returns its files.
func (a *authority) issue(name string) (certFile, keyFile string) {
	a.t.Helper()
	key := a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".crt", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", keyDER)
}

// client is a caller's side of TLS, with a certificate of from, if any, which
// is shown whichever authorities the server asks for.
func (a *authority) client(from *authority, name string) *tls.Config {
	a.t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	config := &tls.Config{RootCAs: pool}
	if from != nil {
		cert, err := tls.LoadX509KeyPair(from.issue(name))
		if err != nil {
			a.t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	return config
}

// operators have the names of their roles.
var operators = map[string]policy.Role{"CN=viewer": policy.RoleViewer, "CN=operator": policy.RoleOperator, "CN=admin": policy.RoleAdmin}

func TestMutualTLS(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	cert, key := ours.issue("controld")
	config, err := server.LoadTLS(cert, key, ours.file)
	if err != nil {
		t.Fatal(err)
	}
	addr := serveTLS(t, config, server.Callers{Operators: operators})
	old := ours.client(ours, "viewer")
	old.MaxVersion = tls.VersionTLS12
	tests := map[string]struct {
		client *tls.Config
		want   codes.Code
	}{
		"a certificate of our authority":  {ours.client(ours, "viewer"), codes.NotFound},
		"one without a role":              {ours.client(ours, "stranger"), codes.PermissionDenied},
		"a certificate of another":        {ours.client(theirs, "viewer"), codes.Unavailable},
		"no certificate":                  {ours.client(nil, ""), codes.Unauthenticated},
		"TLS 1.2":                         {old, codes.Unavailable},
		"a caller who trusts another one": {theirs.client(ours, "viewer"), codes.Unavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			_, err := remudav1.NewFleetServiceClient(dial(t, addr, tt.client)).GetInstance(ctx, &remudav1.GetInstanceRequest{InstanceId: "i-none"})
			if status.Code(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func dial(t *testing.T, addr string, config *tls.Config) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // closing twice is its only error
	return conn
}

func serveTLS(t *testing.T, config *tls.Config, callers server.Callers) string {
	t.Helper()
	s := newServer(t, config, callers)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := s.Serve(listener); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Stop(ctx)
	})
	return listener.Addr().String()
}

func newServer(t *testing.T, config *tls.Config, callers server.Callers) *server.Server {
	t.Helper()
	w := newWorld(t)
	f, err := fleet.New(fleet.Options{
		Store: w.store, Queue: queue.New(time.Now), Compute: w.cloud, GitHub: w.github, Replica: "tls", Prices: &prices, ScaleDown: &fleet.ScaleDown{GitHub: w.github},
		Pools: map[string]fleet.Pool{"default": {Policy: lifecycle.DefaultPolicy()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Fleet: f, TLS: config, Callers: callers})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestARenewedCertificateIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t, "ours")
		cert, key := a.issue("controld")
		config, err := server.LoadTLS(cert, key, "")
		if err != nil {
			t.Fatal(err)
		}
		served := func() string {
			t.Helper()
			got, err := config.GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			return string(got.Certificate[0])
		}
		first := served()
		a.issue("controld") // over the same files
		if served() != first {
			t.Error("the files are read for each caller")
		}
		time.Sleep(time.Minute)
		renewed := served()
		if renewed == first {
			t.Error("the old certificate is served a minute after it was renewed")
		}
		if err := os.Truncate(key, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if served() != renewed {
			t.Error("a half written key takes the certificate away")
		}
		a.issue("controld")
		if served() != renewed {
			t.Error("files that could not be read are read for each caller")
		}
		time.Sleep(time.Minute)
		if served() == renewed {
			t.Error("the old certificate is served a minute after the key was whole again")
		}
	})
}

func TestPlaintextIsForLoopbackOnly(t *testing.T) {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	err = newServer(t, nil, server.Callers{}).Serve(listener)
	if err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("got %v, want a refusal that names loopback", err)
	}
}

func TestLoadTLSNamesTheFile(t *testing.T) {
	a := newAuthority(t, "ours")
	cert, key := a.issue("controld")
	empty := a.write("empty.pem", "NOTHING", nil)
	for name, files := range map[string][3]string{
		"no such certificate": {cert + "x", key, ""},
		"no such key":         {cert, key + "x", ""},
		"no such authorities": {cert, key, a.file + "x"},
		"empty authorities":   {cert, key, empty},
	} {
		if _, err := server.LoadTLS(files[0], files[1], files[2]); err == nil || !strings.Contains(err.Error(), a.dir) {
			t.Errorf("%s: got %v, want an error with the path", name, err)
		}
	}
}
