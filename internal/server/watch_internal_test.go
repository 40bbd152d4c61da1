package server

import (
	"context"
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

// A connection outlives the certificate that it was made with; a watch on it does not. One without a certificate ends with its caller alone.
func TestAWatchEndsWithItsCertificate(t *testing.T) {
	for name, tt := range map[string]struct {
		certified time.Duration // how long the certificate is good; 0: there is none
		after     time.Duration
		code      codes.Code
		says      string
	}{
		"with a certificate": {10 * time.Minute, 10 * time.Minute, codes.Unauthenticated, "the client certificate expired at "},
		"without one":        {0, time.Hour, codes.DeadlineExceeded, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, connection := time.Now(), credentials.TLSInfo{}
				if tt.certified > 0 {
					cert := &x509.Certificate{NotAfter: began.Add(tt.certified)}
					connection.State.VerifiedChains = [][]*x509.Certificate{{cert}}
				}
				ctx, cancel := context.WithTimeout(peer.NewContext(t.Context(), &peer.Peer{AuthInfo: connection}), time.Hour)
				defer cancel()
				s := &service{now: time.Now, fleet: watched(t), watchers: make(chan struct{}, maxWatchers), stopping: t.Context(), handOver: t.Context()}
				err := s.WatchFleet(&remudav1.WatchFleetRequest{}, watcher{ctx: ctx})
				if status.Code(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("the watch ended with %v", err)
				}
				if after := time.Since(began); after != tt.after {
					t.Errorf("the watch ended after %s, want %s", after, tt.after)
				}
			})
		})
	}
}

// watched is a fleet in which nothing happens.
func watched(t *testing.T) *fleet.Fleet {
	t.Helper()
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
	return f
}

// noGitHub is of no use to a fleet that is only watched.
type noGitHub struct{ fleet.GitHub }
