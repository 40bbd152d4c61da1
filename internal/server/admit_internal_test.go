package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

func TestCallersAreAdmitted(t *testing.T) {
	near := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	far := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	known := credentials.TLSInfo{State: tls.ConnectionState{
		VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: "ci"}}}},
	}}
	const provision, health = remudav1.FleetService_Provision_FullMethodName, "/grpc.health.v1.Health/Check"
	tests := map[string]struct {
		peer   peer.Peer
		method string
		want   codes.Code
		caller string
	}{
		"this machine":                 {peer.Peer{Addr: near, LocalAddr: near}, provision, codes.OK, "loopback"},
		"this machine with TLS":        {peer.Peer{Addr: near, LocalAddr: near, AuthInfo: credentials.TLSInfo{}}, provision, codes.OK, "loopback"},
		"another with a certificate":   {peer.Peer{Addr: far, LocalAddr: far, AuthInfo: known}, provision, codes.OK, "CN=ci"},
		"another without one":          {peer.Peer{Addr: far, LocalAddr: far, AuthInfo: credentials.TLSInfo{}}, provision, codes.Unauthenticated, ""},
		"another that watches":         {peer.Peer{Addr: far, LocalAddr: far}, remudav1.FleetService_WatchFleet_FullMethodName, codes.Unauthenticated, ""},
		"another that reads":           {peer.Peer{Addr: far, LocalAddr: far}, remudav1.FleetService_ListInstances_FullMethodName, codes.Unauthenticated, ""},
		"another that asks for health": {peer.Peer{Addr: far, LocalAddr: far}, health, codes.OK, ""},
		"from afar to loopback":        {peer.Peer{Addr: far, LocalAddr: near}, provision, codes.Unauthenticated, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := admit(peer.NewContext(t.Context(), &tt.peer), tt.method)
			if status.Code(err) != tt.want || callerOf(&tt.peer) != tt.caller {
				t.Errorf("got %v for caller %q, want %s for %q", err, callerOf(&tt.peer), tt.want, tt.caller)
			}
		})
	}
	if err := admit(t.Context(), provision); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a peer: %v, want UNAUTHENTICATED", err)
	}
}
