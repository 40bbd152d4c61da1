package connect_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/remuda-ci/remuda/internal/ca"
	"github.com/remuda-ci/remuda/internal/cli/connect"
	"github.com/remuda-ci/remuda/internal/cli/failure"
)

func TestWithPort(t *testing.T) {
	for text, want := range map[string]string{
		"h": "h:7443", "h:1": "h:1", "127.0.0.1": "127.0.0.1:7443", "::1": "[::1]:7443", "[::1]": "[::1]:7443", "[::1]:1": "[::1]:1",
		"": "", ":1": "", "h:": "", "https://h": "", "a b": "",
	} {
		if got, err := connect.WithPort(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for name, test := range map[string]struct {
		target connect.Target
		want   bool
	}{
		"loopback":                 {connect.Target{Address: "127.0.0.1:1"}, true},
		"loopback of IPv6":         {connect.Target{Address: "[::1]:1"}, true},
		"its name":                 {connect.Target{Address: "localhost:1"}, true},
		"with a token":             {connect.Target{Address: "127.0.0.1:1", TokenFile: "t"}, true},
		"with an authority":        {connect.Target{Address: "127.0.0.1:1", CAFile: "c"}, false},
		"another machine":          {connect.Target{Address: "10.0.0.1:1"}, false},
		"a name like the loopback": {connect.Target{Address: "localhost.acme.com:1"}, false},
	} {
		if got := test.target.Plain(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// authority is a directory as `controld ca init` makes it, with the client certificate of an operator.
func authority(t *testing.T, now time.Time, hosts ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ca")
	server := ca.Request{Name: "controld", Hosts: hosts, Valid: 24 * time.Hour}
	if _, err := ca.Init(dir, ca.Options{Name: "test", Valid: 240 * time.Hour, Server: server}, now); err != nil {
		t.Fatal(err)
	}
	a, err := ca.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Issue(dir, ca.Request{Name: "alice", Valid: 24 * time.Hour}, now); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serve answers as controld does: TLS, and client certificates where an authority for them is given.
func serve(t *testing.T, dir string, clients bool) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "controld.crt"), filepath.Join(dir, "controld.key"))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		pem, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
		if err != nil || !config.ClientCAs.AppendCertsFromPEM(pem) {
			t.Fatal(err)
		}
	}
	return start(t, grpc.Creds(credentials.NewTLS(config)))
}

func start(t *testing.T, options ...grpc.ServerOption) string {
	t.Helper()
	l := listen(t)
	s := grpc.NewServer(options...)
	healthv1.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(l) }() // Stop ends it
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func shown(dir, address string) connect.Target {
	return connect.Target{Address: address, CAFile: filepath.Join(dir, "ca.pem"), CertFile: filepath.Join(dir, "alice.crt"), KeyFile: filepath.Join(dir, "alice.key")}
}

func TestProbe(t *testing.T) {
	now := time.Now()
	ours, other := authority(t, now, "127.0.0.1"), authority(t, now, "127.0.0.1")
	old, future := authority(t, now.Add(-60*24*time.Hour), "127.0.0.1"), authority(t, now.Add(48*time.Hour), "127.0.0.1")
	elsewhere := authority(t, now, "controld.acme.com", "10.0.0.1")
	closed := listen(t)
	address := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	open := serve(t, ours, false)
	strict := serve(t, ours, true)
	tests := map[string]struct {
		target connect.Target
		// want is in the error; "" is none. remedy is in what to do.
		want, remedy string
	}{
		"all is well":               {shown(ours, strict), "", ""},
		"plaintext":                 {connect.Target{Address: start(t)}, "", ""},
		"nothing listens":           {connect.Target{Address: address}, "connection refused", "controld dev"},
		"no such host":              {connect.Target{Address: "controld.invalid:7443"}, "controld.invalid", ""},
		"an authority of no system": {connect.Target{Address: open, ServerName: "127.0.0.1"}, "does not know", "--ca"},
		"another authority":         {shown(other, open), "not of the authority in " + other, "ca.pem"},
		"a server that expired":     {connect.Target{Address: serve(t, old, false), CAFile: filepath.Join(old, "ca.pem")}, "expired on", "--replace controld"},
		"a server of the future":    {connect.Target{Address: serve(t, future, false), CAFile: filepath.Join(future, "ca.pem")}, "is valid from", "clock"},
		"another name":              {shown(elsewhere, serve(t, elsewhere, false)), "is for controld.acme.com, 10.0.0.1, not for 127.0.0.1", "--server-name"},
		"a server that wants a certificate": {connect.Target{Address: strict, CAFile: filepath.Join(ours, "ca.pem")},
			"wants a client certificate", "--cert"},
		"a certificate of another authority": {connect.Target{Address: strict, CAFile: filepath.Join(ours, "ca.pem"),
			CertFile: filepath.Join(other, "alice.crt"), KeyFile: filepath.Join(other, "alice.key")}, "refuses the client certificate", "client_ca_file"},
		"a certificate that expired": {connect.Target{Address: strict, CAFile: filepath.Join(ours, "ca.pem"),
			CertFile: filepath.Join(old, "alice.crt"), KeyFile: filepath.Join(old, "alice.key")}, "since it expired on", "--replace"},
		"TLS where plaintext is expected": {connect.Target{Address: open}, "speaks TLS", "--ca"},
		"plaintext where TLS is expected": {shown(ours, start(t)), "does not speak TLS", "loopback only"},
		"no such file":                    {connect.Target{Address: open, CAFile: "/no/such/ca.pem"}, "no such file", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := test.target.Probe(t.Context())
			var known *failure.Error
			switch {
			case test.want == "" && err == nil:
			case !errors.As(err, &known):
				t.Errorf("got %v, want an error with %q", err, test.want)
			case test.want == "" || !strings.Contains(err.Error(), test.want) || !strings.Contains(known.Remedy, test.remedy):
				t.Errorf("got %v (%s), want an error with %q and a remedy with %q", err, known.Remedy, test.want, test.remedy)
			}
		})
	}
}

// A service that speaks first, as SSH does, and one that does not speak.
func TestProbeOfAnotherService(t *testing.T) {
	for _, greeting := range []string{"SSH-2.0-OpenSSH_9.6\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", ""} {
		l := listen(t)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte(greeting)) // the client may be gone
				_ = conn.Close()
			}
		}()
		_, err := connect.Target{Address: l.Addr().String()}.Probe(t.Context())
		if err == nil || failure.CodeOf(err) != failure.Unavailable {
			t.Errorf("%q: got %v", greeting, err)
		}
	}
}

// The token is read for each call, and sent over TLS, or on loopback.
func TestToken(t *testing.T) {
	got := make(chan string, 1)
	address := start(t, grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		got <- strings.Join(md.Get("authorization"), " ")
		return handler(ctx, req)
	}))
	path := filepath.Join(t.TempDir(), "token")
	conn, err := connect.Target{Address: address, TokenFile: path}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
		if sent := <-got; sent != "Bearer "+token {
			t.Errorf("sent %q", sent)
		}
	}
	for _, text := range []string{"", "two tokens"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := connect.ReadToken(path); err == nil {
			t.Errorf("%q was taken for a token", text)
		}
	}
}
