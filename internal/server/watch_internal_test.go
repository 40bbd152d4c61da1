package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	compute "github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	store "github.com/remuda-ci/remuda/internal/store/memory"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// watcher is the stream of a caller who takes everything.
type watcher struct {
	grpc.ServerStreamingServer[remudav1.WatchFleetResponse]
	ctx context.Context
}

func (w watcher) Context() context.Context                { return w.ctx }
func (w watcher) SendHeader(metadata.MD) error            { return nil }
func (w watcher) Send(*remudav1.WatchFleetResponse) error { return nil }

// A connection outlives the certificate that it was made with; a watch on it does not.
func TestAWatchEndsWithItsCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, err := compute.New(compute.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows := store.New(time.Now)
		f, err := fleet.New(fleet.Options{
			Store: rows, Guards: rows, Queue: queue.New(time.Now), Compute: cloud, GitHub: noGitHub{}, Replica: "test",
			Pools:   map[string]fleet.Pool{"default": {Name: "default", ResourceClasses: []string{"large"}, UsageClasses: lifecycle.UsageClasses, Policy: lifecycle.DefaultPolicy()}},
			Classes: map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}},
		})
		if err != nil {
			t.Fatal(err)
		}
		cert := &x509.Certificate{NotAfter: time.Now().Add(10 * time.Minute)}
		ctx := peer.NewContext(t.Context(), &peer.Peer{
			AuthInfo: credentials.TLSInfo{State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{cert}}}},
		})
		s := &service{now: time.Now, fleet: f, watchers: make(chan struct{}, maxWatchers), stopping: t.Context(), handOver: t.Context()}
		err = s.WatchFleet(&remudav1.WatchFleetRequest{}, watcher{ctx: ctx})
		if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "the client certificate expired at ") {
			t.Errorf("the watch ended with %v", err)
		}
		if now := time.Now(); !now.Equal(cert.NotAfter) {
			t.Errorf("the watch ended at %s, the certificate at %s", now, cert.NotAfter)
		}
	})
}

// noGitHub is of no use to a fleet that is only watched.
type noGitHub struct{ fleet.GitHub }
