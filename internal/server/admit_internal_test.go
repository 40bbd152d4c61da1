package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/policy"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// shows is a connection with a certificate of a subject that TLS verified.
func shows(t *testing.T, subject pkix.RDNSequence) credentials.TLSInfo {
	t.Helper()
	raw, err := asn1.Marshal(subject)
	if err != nil {
		t.Fatal(err)
	}
	return credentials.TLSInfo{State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{RawSubject: raw, NotAfter: time.Now().Add(time.Hour)}}}}}
}

// expired is a connection whose certificate was good when it was made.
func expired() credentials.TLSInfo {
	return credentials.TLSInfo{State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{NotAfter: time.Now().Add(-time.Second)}}}}}
}

func TestCallersAreAdmitted(t *testing.T) {
	near := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	far := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	named := func(cn string) credentials.TLSInfo {
		return shows(t, pkix.Name{CommonName: cn, Organization: []string{"Acme"}}.ToRDNSequence())
	}
	nothing := credentials.TLSInfo{}
	const provision, health = remudav1.FleetService_Provision_FullMethodName, "/grpc.health.v1.Health/Check"
	tests := map[string]struct {
		peer   peer.Peer
		method string
		want   codes.Code
		caller string
	}{
		"this machine":                 {peer.Peer{Addr: near, LocalAddr: near}, provision, codes.OK, "loopback"},
		"this machine with TLS":        {peer.Peer{Addr: near, LocalAddr: near, AuthInfo: nothing}, provision, codes.Unauthenticated, ""},
		"another with a certificate":   {peer.Peer{Addr: far, LocalAddr: far, AuthInfo: named("ci")}, provision, codes.OK, "CN=ci,O=Acme"},
		"this machine with another's":  {peer.Peer{Addr: near, LocalAddr: near, AuthInfo: named("eve")}, provision, codes.PermissionDenied, "CN=eve,O=Acme"},
		"a certificate without a role": {peer.Peer{Addr: far, LocalAddr: far, AuthInfo: named("eve")}, provision, codes.PermissionDenied, "CN=eve,O=Acme"},
		"an unreadable certificate":    {peer.Peer{Addr: far, LocalAddr: far, AuthInfo: credentials.TLSInfo{State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{NotAfter: time.Now().Add(time.Hour)}}}}}}, provision, codes.Unauthenticated, ""},
		"one that has expired since":   {peer.Peer{Addr: far, LocalAddr: far, AuthInfo: expired()}, provision, codes.Unauthenticated, ""},
		"another without one":          {peer.Peer{Addr: far, LocalAddr: far, AuthInfo: nothing}, provision, codes.Unauthenticated, ""},
		"another that watches":         {peer.Peer{Addr: far, LocalAddr: far}, remudav1.FleetService_WatchFleet_FullMethodName, codes.Unauthenticated, ""},
		"another that reads":           {peer.Peer{Addr: far, LocalAddr: far}, remudav1.FleetService_ListInstances_FullMethodName, codes.Unauthenticated, ""},
		"another that asks for health": {peer.Peer{Addr: far, LocalAddr: far}, health, codes.OK, ""},
		"from afar to loopback":        {peer.Peer{Addr: far, LocalAddr: near}, provision, codes.Unauthenticated, ""},
		"an unknown method":            {peer.Peer{Addr: near, LocalAddr: near}, provision + "Twice", codes.PermissionDenied, "loopback"},
	}
	e := &interceptors{log: hclog.NewNullLogger(), callers: Callers{Operators: map[string]policy.Role{"CN=ci,O=Acme": policy.RoleOperator}}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := withCaller(peer.NewContext(t.Context(), &tt.peer))
			err := e.admit(ctx, tt.method, nil)
			if status.Code(err) != tt.want || callerOf(ctx).name != tt.caller {
				t.Errorf("got %v for caller %q, want %s for %q", err, callerOf(ctx).name, tt.want, tt.caller)
			}
		})
	}
	eve := peer.Peer{Addr: far, LocalAddr: far, AuthInfo: named("eve")}
	if err := e.admit(peer.NewContext(t.Context(), &eve), provision, nil); !strings.Contains(err.Error(), "CN=eve,O=Acme, has no role: add it to callers.operators") {
		t.Errorf("who has no role is told %v", err)
	}
	stranger := peer.Peer{Addr: far, LocalAddr: far}
	if err := e.admit(peer.NewContext(t.Context(), &stranger), provision, nil); !strings.Contains(err.Error(), "a client certificate or an ID token of GitHub Actions is required") {
		t.Errorf("who shows nothing in plaintext gets %v", err)
	}
	if err := e.admit(t.Context(), provision, nil); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a peer: %v, want UNAUTHENTICATED", err)
	}
}

// What a workflow shows is never read off a wire that others can read.
func TestATokenInPlaintextIsForLoopbackOnly(t *testing.T) {
	near := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	far := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	tokens := &asked{}
	e := &interceptors{log: hclog.NewNullLogger(), callers: Callers{Tokens: tokens}}
	for name, tt := range map[string]struct {
		peer peer.Peer
		want int
	}{
		"far in plaintext":  {peer.Peer{Addr: far, LocalAddr: far}, 0},
		"near in plaintext": {peer.Peer{Addr: near, LocalAddr: near}, 1},
		"far with TLS":      {peer.Peer{Addr: far, LocalAddr: far, AuthInfo: credentials.TLSInfo{}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tokens.times = 0
			ctx := metadata.NewIncomingContext(peer.NewContext(t.Context(), &tt.peer), metadata.Pairs("authorization", "Bearer x"))
			if err := e.admit(ctx, remudav1.FleetService_Release_FullMethodName, nil); status.Code(err) != codes.Unauthenticated || tokens.times != tt.want {
				t.Errorf("got %v, and %d looks at the token", err, tokens.times)
			}
		})
	}
}

// Two subjects that differ anywhere never have the same text.
func TestSubjectsAreTold(t *testing.T) {
	cn, o := asn1.ObjectIdentifier{2, 5, 4, 3}, asn1.ObjectIdentifier{2, 5, 4, 10}
	one := func(id asn1.ObjectIdentifier, v string) pkix.RelativeDistinguishedNameSET {
		return pkix.RelativeDistinguishedNameSET{{Type: id, Value: v}}
	}
	for want, names := range map[string]pkix.RDNSequence{
		"CN=alice,O=Acme":    {one(o, "Acme"), one(cn, "alice")},
		"O=Acme,CN=alice":    {one(cn, "alice"), one(o, "Acme")},
		`CN=alice\,O=Acme`:   {one(cn, "alice,O=Acme")},
		"CN=alice,CN=eve":    {one(cn, "eve"), one(cn, "alice")},
		"O=Acme+CN=alice":    {{{Type: cn, Value: "alice"}, {Type: o, Value: "Acme"}}},
		"1.2.3=#130161,CN=a": {one(cn, "a"), one(asn1.ObjectIdentifier{1, 2, 3}, "a")},
	} {
		raw, err := asn1.Marshal(names)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := subject(&x509.Certificate{RawSubject: raw}); got != want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}
