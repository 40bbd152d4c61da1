package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const repository = "acme/app"

// world is a fleet on the embedded store and queue, served over gRPC on
// loopback.
type world struct {
	file   *db.DB // nil on DynamoDB Local
	store  *instantHosts
	queue  *queue.Queue
	fleet  *fleet.Fleet
	client remudav1.FleetServiceClient
	caches []cache.Spec  // of its pool
	calls  *atomic.Int64 // of DynamoDB; nil on the embedded store
}

func newWorld(b *testing.B, caches ...cache.Spec) *world {
	b.Helper()
	return newWorldOn(b, filepath.Join(b.TempDir(), "remuda.db"), caches...)
}

// newWorldOn is newWorld on a file that may have something already.
func newWorldOn(b *testing.B, path string, caches ...cache.Spec) *world {
	b.Helper()
	file, err := db.Open(path, db.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := file.Close(); err != nil {
			b.Error(err)
		}
	})
	rows := sqlite.New(file)
	w := &world{file: file, caches: caches}
	w.begin(b, rows, rows, func(ctx context.Context, p lifecycle.Report) error { return rows.ForHost(p.HostKey).PutReport(ctx, p) }, db.WritesAtOnce)
	return w
}

// newDynamoWorld is the same on DynamoDB Local, with the queue in memory.
func newDynamoWorld(b *testing.B, caches ...cache.Spec) *world {
	b.Helper()
	w := &world{caches: caches, calls: &atomic.Int64{}}
	config := awstest.Config(b, awstest.DynamoDB(b))
	config.HTTPClient = countingClient{config.HTTPClient, w.calls}
	rows := dynamo.New(dynamodb.NewFromConfig(config), dynamo.Options{})
	if _, err := rows.Ensure(b.Context(), false); err != nil {
		b.Fatal(err)
	}
	w.begin(b, rows, rows, func(ctx context.Context, p lifecycle.Report) error { return rows.ForHost(p.HostKey).PutReport(ctx, p) }, 0)
	return w
}

// countingClient counts the calls of DynamoDB.
type countingClient struct {
	sdk.HTTPClient
	calls *atomic.Int64
}

func (c countingClient) Do(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.HTTPClient.Do(r)
}

// begin serves a fleet on a store.
func (w *world) begin(b *testing.B, rows fleet.Store, jobs fleet.JobStore, put func(context.Context, lifecycle.Report) error, atOnce int) {
	b.Helper()
	compute, err := memory.New(memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w.store, w.queue = &instantHosts{Store: rows, put: put}, queue.New(time.Now)
	w.fleet, err = fleet.New(fleet.Options{
		Store: w.store, Queue: w.queue, Compute: compute, GitHub: &offlineGitHub{},
		Pools: map[string]fleet.Pool{"default": {
			Name: "default", ResourceClasses: []string{"large"},
			UsageClasses: []lifecycle.UsageClass{lifecycle.UsageOnDemand}, Policy: lifecycle.DefaultPolicy(), Caches: w.caches,
		}},
		Classes: map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}},
		Replica: "bench", AtOnce: atOnce, Sources: pushes{}, Jobs: jobsOf(jobs),
	})
	if err != nil {
		b.Fatal(err)
	}
	w.client = serve(b, w.fleet)
}

// pushes says that each run is a push to a protected branch.
type pushes struct{}

func (pushes) RunSource(context.Context, string, string) (cache.Source, error) {
	return cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}, nil
}

func (pushes) Branch(context.Context, string, string, string) (cache.Branch, error) {
	return cache.Branch{Has: true, Protected: true}, nil
}

func (pushes) Mirror(context.Context, string, string) (lifecycle.Mirror, error) {
	return lifecycle.Mirror{}, lifecycle.ErrUnavailable
}

// serve offers the fleet on a loopback port until the benchmark ends.
func serve(b *testing.B, f *fleet.Fleet) remudav1.FleetServiceClient {
	b.Helper()
	s, err := server.New(server.Options{Fleet: f})
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		if err := s.Serve(listener); err != nil {
			b.Error(err)
		}
	}()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = conn.Close() // closing twice is its only error
		s.Stop(ctx)
	})
	return remudav1.NewFleetServiceClient(conn)
}

// fill puts n pooled hosts into the store and the queue.
func (w *world) fill(b *testing.B, n int, dueAt func(i int) time.Time) {
	b.Helper()
	now := time.Now()
	inBatches(b, n, func(ctx context.Context, i int) error { return w.pool(ctx, i, now, dueAt) })
}

// inBatches calls do for each of n, many at once, so that the store commits what they write together.
func inBatches(b *testing.B, n int, do func(ctx context.Context, i int) error) {
	b.Helper()
	const together = 256
	errs := make(chan error, together)
	for from := 0; from < n; from += together {
		to := min(from+together, n)
		for i := from; i < to; i++ {
			go func() { errs <- do(context.Background(), i) }()
		}
		for range to - from {
			if err := <-errs; err != nil {
				b.Fatal(err)
			}
		}
	}
}

// hostID is an id without order, as those of EC2.
func hostID(i int) string { return fmt.Sprintf("i-%017x", uint64(i)*0x9e3779b97f4a7c15>>4) }

// record is a host that waits for a run.
func record(i int, now time.Time) lifecycle.Record {
	id := hostID(i)
	return lifecycle.Record{
		HostKey: id, InstanceID: id, Pool: "default", State: lifecycle.StateIdle, Repository: repository,
		Assignment: 2, Version: 1, MaxRuntime: time.Hour,
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: "c6i.large",
			CPU: 2, MemoryMiB: 4096,
		},
		TrustKey: repository, Uses: 1,
		PooledAt: now, Threshold: now.Add(time.Hour), DueAt: now.Add(time.Hour), CreatedAt: now, UpdatedAt: now,
	}
}

func (w *world) pool(ctx context.Context, i int, now time.Time, dueAt func(int) time.Time) error {
	r := record(i, now)
	var held []cache.Held
	for _, key := range cache.Keys(w.caches, repository) {
		held = append(held, cache.Held{Key: key, Bytes: 1 << 30, CommittedAt: now})
	}
	r.Caches = cache.ListOf(held...)
	if dueAt != nil {
		r.DueAt = dueAt(i)
	}
	if err := w.store.CreateInstance(ctx, r); err != nil {
		return err
	}
	if w.caches != nil { // such hosts are in no queue
		return nil
	}
	return w.queue.Send(ctx, r.Message())
}

// percentile is the q-th part of sorted durations, in milliseconds.
func percentile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(int(q*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i].Microseconds()) / 1000
}

// reportLatency adds p50 and p99 to a benchmark's figures.
func reportLatency(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(percentile(took, 0.50), "p50-ms")
	b.ReportMetric(percentile(took, 0.99), "p99-ms")
}
