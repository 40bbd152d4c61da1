package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	compute "github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
	store "github.com/remuda-ci/remuda/internal/store/memory"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	repository = "acme/app"
	// scarce are types that there are, but never one to be had.
	scarce = "r8i.*"
)

// world is a server on memory adapters whose hosts signal at once.
type world struct {
	remudav1.FleetServiceClient
	conn   *grpc.ClientConn
	server *server.Server
	dial   func(context.Context) (net.Conn, error)
	store  *hosts
	github *tokens
	cloud  *compute.Compute
	log    *buffer
	counts *counts
}

// counts are the calls by method and code.
type counts struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *counts) Requested(method, code string, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[method+" "+code]++
}

func (c *counts) of(method string, code codes.Code) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[method+" "+code.String()]
}

// buffer is a log that a test reads while the server writes it.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, server.Callers{})
}

// newWorldOf is a world with callers beside those on this machine.
func newWorldOf(t testing.TB, callers server.Callers, change ...func(*fleet.Options)) *world {
	t.Helper()
	return newWorldServing(t, func(o *server.Options) { o.Callers = callers }, change...)
}

// newWorldServing is a world whose server has other options.
func newWorldServing(t testing.TB, serve func(*server.Options), change ...func(*fleet.Options)) *world {
	t.Helper()
	limits := placement.Limits{Arch: catalogue.ArchX86, Capacity: map[string]int{scarce: 0}}
	cloud, err := compute.New(compute.Options{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{store: &hosts{Store: store.New(time.Now)}, github: &tokens{}, cloud: cloud, log: &buffer{}, counts: &counts{calls: map[string]int{}}}
	o := fleet.Options{
		Prices: &prices, CallsMade: func() []meter.Calls { return nil }, Budgets: budgets,
		Store: w.store, Guards: w.store, Queue: queue.New(time.Now), Compute: cloud, GitHub: w.github, Replica: "test",
		Pools: map[string]fleet.Pool{"default": {
			Name: "default", ResourceClasses: []string{"large"}, UsageClasses: lifecycle.UsageClasses,
			Policy: lifecycle.DefaultPolicy(),
		}, "spare": {Name: "spare", Policy: lifecycle.DefaultPolicy()}},
		Workers: &workqueue.Options{Store: w.store.Store, Services: map[string]model.JobPolicy{"render": {QueueTime: time.Hour}, "archive": {QueueTime: time.Hour}}},
		Classes: map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}},
		Sells: func(c fleet.Class, patterns ...[]string) bool {
			return limits.Sells(c.CPU, c.MemoryMiB, patterns...)
		},
	}
	for _, c := range change {
		c(&o)
	}
	f, err := fleet.New(o)
	if err != nil {
		t.Fatal(err)
	}
	served := server.Options{
		Fleet: f, Metrics: w.counts, Patience: 100 * time.Millisecond, Ready: w.store.ready, ReadyEvery: 10 * time.Millisecond,
		Log:     hclog.New(&hclog.LoggerOptions{Output: w.log, Level: hclog.Debug}),
		Replica: "b", Replicas: twoReplicas, Credentials: twoCredentials,
	}
	serve(&served)
	if w.server, err = server.New(served); err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	w.dial = listener.DialContext
	go func() {
		if err := w.server.Serve(listener); err != nil {
			t.Error(err)
		}
	}()
	w.conn, err = grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return w.dial(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	w.FleetServiceClient = remudav1.NewFleetServiceClient(w.conn)
	t.Cleanup(func() {
		_ = w.conn.Close() // closing twice is its only error
		w.stop()
	})
	return w
}

func (w *world) stop() { w.stopWithin(5 * time.Second) }

func (w *world) stopWithin(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	w.server.Stop(ctx)
}

// hosts is a store whose hosts report as soon as something is asked of them.
type hosts struct {
	*store.Store
	panics atomic.Bool
	// silent hosts do not report; the reports are away when they cannot be read.
	silent, away atomic.Bool
	// requestsFull and hostsFull keep those rows from being written: reads go
	// well on a full disk. fills makes the disk full for hosts once one of them is written.
	requestsFull, hostsFull, fills atomic.Bool
	// stuck keeps the reader of a host until it gives up.
	stuck atomic.Bool
	// holdFull keeps the hold on the fleet from being written.
	holdFull atomic.Bool
	// dirty hosts cannot be cleaned.
	dirty atomic.Bool
}

// errFull is what a database says whose disk is full.
var errFull = &lifecycle.UnavailableError{What: "write", Err: errors.New("database or disk is full: free some space on its disk")}

func (h *hosts) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	if h.requestsFull.Load() {
		return q, errFull
	}
	return h.Store.UpdateRequest(ctx, q)
}

func (h *hosts) UpdateFleetHold(ctx context.Context, hold fleethold.Hold) (fleethold.Hold, error) {
	if h.holdFull.Load() {
		return hold, errFull
	}
	return h.Store.UpdateFleetHold(ctx, hold)
}

func (h *hosts) ready(context.Context) error {
	if h.away.Load() {
		return errors.New("the store is away")
	}
	return nil
}

func (h *hosts) Reports(ctx context.Context, keys []string) (map[string]lifecycle.Report, error) {
	if err := h.ready(ctx); err != nil {
		return nil, &lifecycle.UnavailableError{What: "read reports", Err: err}
	}
	return h.Store.Reports(ctx, keys)
}

func (h *hosts) report(ctx context.Context, r lifecycle.Record) error {
	if h.silent.Load() {
		return nil
	}
	signal := lifecycle.SignalRegOK
	if r.State == lifecycle.StateIdle {
		signal = lifecycle.SignalRemoveRegOK
		if h.dirty.Load() {
			signal = lifecycle.SignalRemoveRegFailed
		}
	}
	return h.ForHost(r.HostKey).PutReport(ctx, lifecycle.Report{
		HostKey: r.HostKey, HeartbeatAt: time.Now(), Assignment: r.Assignment, Signal: signal,
	})
}

func (h *hosts) CreateInstance(ctx context.Context, r lifecycle.Record) error {
	if err := h.Store.CreateInstance(ctx, r); err != nil {
		return err
	}
	return h.report(ctx, r)
}

func (h *hosts) ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	r, err := h.Store.ClaimInstance(ctx, c)
	if err != nil {
		return r, err
	}
	return r, h.report(ctx, r)
}

func (h *hosts) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	if h.hostsFull.Load() {
		return r, errFull
	}
	r, err := h.Store.UpdateInstance(ctx, r)
	if err != nil {
		return r, err
	}
	if h.fills.Load() {
		h.hostsFull.Store(true)
	}
	return r, h.report(ctx, r)
}

func (h *hosts) Instance(ctx context.Context, key string) (lifecycle.Record, error) {
	if h.stuck.Load() {
		<-ctx.Done()
		return lifecycle.Record{}, ctx.Err()
	}
	if h.panics.Load() {
		panic("the store is mad")
	}
	return h.Store.Instance(ctx, key)
}

// tokens mints tokens while it is up.
type tokens struct {
	fleet.GitHub
	down   atomic.Bool
	minted atomic.Int64
}

func (g *tokens) mint(kind lifecycle.RegistrationKind) (lifecycle.Registration, error) {
	if g.down.Load() {
		return lifecycle.Registration{}, &lifecycle.UnavailableError{What: "mint a token", RetryAfter: 7 * time.Second, Err: context.DeadlineExceeded}
	}
	return lifecycle.Registration{
		Kind: kind, Secret: lifecycle.Secret(fmt.Sprint("secret-", g.minted.Add(1))), ExpiresAt: time.Now().Add(time.Hour),
	}, nil
}

// Runners is an empty list.
func (g *tokens) Runners(context.Context, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	return lifecycle.Page[lifecycle.Runner]{}, nil
}

// Runner knows none.
func (g *tokens) Runner(context.Context, string, int64) (lifecycle.Runner, error) {
	return lifecycle.Runner{}, lifecycle.ErrNotFound
}

func (g *tokens) FindRunner(context.Context, string, string) (lifecycle.Runner, error) {
	return lifecycle.Runner{}, lifecycle.ErrNotFound
}

func (g *tokens) RegistrationToken(context.Context, string) (lifecycle.Registration, error) {
	return g.mint(lifecycle.RegistrationToken)
}

func (g *tokens) RemoveToken(context.Context, string) (lifecycle.Registration, error) {
	return g.mint(lifecycle.RegistrationRemove)
}
