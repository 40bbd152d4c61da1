package server

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// ours reports whether a method is of the fleet, and not of health or
// reflection, which tell nothing and are open to all.
func ours(method string) bool {
	return strings.HasPrefix(method, "/"+remudav1.FleetService_ServiceDesc.ServiceName+"/")
}

func (e *edge) admitUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := admit(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (e *edge) admitStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := admit(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return next(srv, stream)
}

// admit refuses callers of whom nothing is known: those from other machines
// who have not shown a certificate that was verified (design section 8).
func admit(ctx context.Context, method string) error {
	p, ok := peer.FromContext(ctx)
	if !ours(method) || ok && callerOf(p) != "" {
		return nil
	}
	return status.Error(codes.Unauthenticated, "a client certificate is required off loopback; configure grpc.tls.client_ca_file and present one")
}

// callerOf names a caller for admission and the log: the subject of its
// verified certificate, or "loopback" on this machine. Empty: unknown.
func callerOf(p *peer.Peer) string {
	if tls, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(tls.State.VerifiedChains) > 0 {
		return tls.State.VerifiedChains[0][0].Subject.String()
	}
	if loopback(p.LocalAddr) && loopback(p.Addr) {
		return "loopback"
	}
	return ""
}
