package fleet_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// fate counts the effects of a replica, and lets something happen with the
// given one: after it the replica is dead, or its answer is lost.
type fate struct {
	mu      sync.Mutex
	effects int
	// strikes at that effect, counted from 1; 0: never.
	at int
	// kill ends the replica; nil: the answer is lost, and it lives on.
	kill func()
	dead bool
	what string // the effect that was struck
	// takes is how long each effect takes.
	takes time.Duration
}

var errDead = errors.New("this replica is dead")

// effect does one effect as fate will have it. An answer that is lost is that
// of a write which took effect.
func (f *fate) effect(what string, do func() error) error {
	f.mu.Lock()
	if f.dead {
		f.mu.Unlock()
		return errDead
	}
	f.effects++
	struck := f.effects == f.at
	if struck {
		f.what, f.dead = what, f.kill != nil
	}
	f.mu.Unlock()
	time.Sleep(f.takes)
	err := do()
	switch {
	case struck && f.kill != nil:
		f.kill()
		return errDead
	case struck:
		return &lifecycle.UnavailableError{What: what, RetryAfter: time.Second, Err: context.DeadlineExceeded}
	}
	return err
}

// strikeNext has the next effect be the one that is struck.
func (f *fate) strikeNext() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = f.effects + 1
}

func (f *fate) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// struck is the effect that was, or "".
func (f *fate) struck() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.what
}

// mortalStore is the store as a replica with a fate writes it.
type mortalStore struct {
	*store.Store
	fate *fate
}

func struckBy[T any](f *fate, what string, do func() (T, error)) (T, error) {
	var made T
	err := f.effect(what, func() (err error) {
		made, err = do()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return made, nil
}

func (s mortalStore) CreateWebhook(ctx context.Context, w lifecycle.Webhook) error {
	return s.fate.effect("create webhook", func() error { return s.Store.CreateWebhook(ctx, w) })
}

func (s mortalStore) UpdateWebhook(ctx context.Context, w lifecycle.Webhook) (lifecycle.Webhook, error) {
	return struckBy(s.fate, "update webhook", func() (lifecycle.Webhook, error) { return s.Store.UpdateWebhook(ctx, w) })
}

func (s mortalStore) CreateJob(ctx context.Context, j lifecycle.Job) error {
	return s.fate.effect("create job", func() error { return s.Store.CreateJob(ctx, j) })
}

func (s mortalStore) UpdateJob(ctx context.Context, j lifecycle.Job) (lifecycle.Job, error) {
	return struckBy(s.fate, "update job", func() (lifecycle.Job, error) { return s.Store.UpdateJob(ctx, j) })
}

func (s mortalStore) UpdateSlotTable(ctx context.Context, t slots.Table) (slots.Table, error) {
	return struckBy(s.fate, "update turns", func() (slots.Table, error) { return s.Store.UpdateSlotTable(ctx, t) })
}

func (s mortalStore) CreateRequest(ctx context.Context, q lifecycle.Request) error {
	return s.fate.effect("create request", func() error { return s.Store.CreateRequest(ctx, q) })
}

func (s mortalStore) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	return struckBy(s.fate, "update request", func() (lifecycle.Request, error) { return s.Store.UpdateRequest(ctx, q) })
}

func (s mortalStore) CreateInstance(ctx context.Context, r lifecycle.Record) error {
	return s.fate.effect("create host", func() error { return s.Store.CreateInstance(ctx, r) })
}

func (s mortalStore) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	return struckBy(s.fate, "update host", func() (lifecycle.Record, error) { return s.Store.UpdateInstance(ctx, r) })
}

func (s mortalStore) ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	return struckBy(s.fate, "claim host", func() (lifecycle.Record, error) { return s.Store.ClaimInstance(ctx, c) })
}

func (s mortalStore) UpdateFleetHold(ctx context.Context, h fleethold.Hold) (fleethold.Hold, error) {
	return struckBy(s.fate, "hold the fleet", func() (fleethold.Hold, error) { return s.Store.UpdateFleetHold(ctx, h) })
}

func (s mortalStore) UpdateBreaker(ctx context.Context, b breaker.Row) (breaker.Row, error) {
	return struckBy(s.fate, "update breaker", func() (breaker.Row, error) { return s.Store.UpdateBreaker(ctx, b) })
}

func (s mortalStore) UpdatePause(ctx context.Context, p pause.Pause) (pause.Pause, error) {
	return struckBy(s.fate, "update pause", func() (pause.Pause, error) { return s.Store.UpdatePause(ctx, p) })
}

func (s mortalStore) UpdateQuotaLedger(ctx context.Context, a ledger.Quota) (ledger.Quota, error) {
	return struckBy(s.fate, "update account", func() (ledger.Quota, error) { return s.Store.UpdateQuotaLedger(ctx, a) })
}

func (s mortalStore) SeeOnce(ctx context.Context, kind, id string, until time.Time) error {
	return s.fate.effect("see once", func() error { return s.Store.SeeOnce(ctx, kind, id, until) })
}

// mortalHub is GitHub as a replica with a fate calls it.
type mortalHub struct {
	*hub
	fate *fate
}

func (h mortalHub) JIT(ctx context.Context, repository, name string, labels []string) (lifecycle.Registration, int64, error) {
	type made struct {
		lifecycle.Registration
		id int64
	}
	m, err := struckBy(h.fate, "JIT", func() (made, error) {
		r, id, err := h.hub.JIT(ctx, repository, name, labels)
		return made{r, id}, err
	})
	return m.Registration, m.id, err
}

func (h mortalHub) RerunFailedJobs(ctx context.Context, repository, runID string) error {
	return h.fate.effect("start again", func() error { return h.hub.RerunFailedJobs(ctx, repository, runID) })
}

// mortalGitHub is the same for registrations.
type mortalGitHub struct {
	*fakeGitHub
	fate *fate
}

func (g mortalGitHub) DeleteRunner(ctx context.Context, repository string, id int64) error {
	return g.fate.effect("delete runner", func() error { return g.fakeGitHub.DeleteRunner(ctx, repository, id) })
}

func (g mortalGitHub) SetLabels(ctx context.Context, repository string, id int64, labels []string) error {
	return g.fate.effect("set labels", func() error { return g.fakeGitHub.SetLabels(ctx, repository, id, labels) })
}

// mortalCompute is the cloud as a replica with a fate calls it.
type mortalCompute struct {
	fleet.Compute
	fate *fate
}

func (c mortalCompute) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	return struckBy(c.fate, "launch", func() ([]lifecycle.Machine, error) { return c.Compute.Launch(ctx, order) })
}

func (c mortalCompute) Terminate(ctx context.Context, ids []string) error {
	return c.fate.effect("terminate", func() error { return c.Compute.Terminate(ctx, ids) })
}

// mortalFleet is a replica with a fate.
func (w *world) mortalFleet(replica string, f *fate, maximum int, change ...func(*fleet.JobOptions)) *fleet.Fleet {
	return w.newFleet(replica, w.mortal(f, maximum, change...))
}

func (w *world) mortal(f *fate, maximum int, change ...func(*fleet.JobOptions)) func(*fleet.Options) {
	return func(o *fleet.Options) {
		withJobs(o, w.hub, maximum, change...)
		rerunning(o)
		o.GitHub, o.Compute = mortalGitHub{w.github, f}, mortalCompute{w.compute, f}
		o.Store = mortalStore{w.store, f}
		o.Jobs.Store, o.Jobs.GitHub = mortalStore{w.store, f}, mortalHub{w.hub, f}
	}
}
