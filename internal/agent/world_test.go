package agent_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// world is one host and its two rows. The next Look carries out the effects that
// the host was given. Every call to it may be the agent's last one (crashAt).
type world struct {
	mu sync.Mutex
	// introduced are the texts for the logs of jobs.
	introduced []string

	now func() time.Time // the host's clock
	// sleepUntil sets a clock that stands still otherwise.
	sleepUntil func(time.Time)
	offset     time.Duration
	record     *lifecycle.Record
	older      []lifecycle.Record // what an inconsistent read may return, oldest first
	// stale: two reads in three return an older record; staleAlways: all do.
	stale, staleAlways bool
	away               bool // the store
	unreadable         bool // the record, while reports are taken
	hides              bool // reads that may be old find no record
	report             lifecycle.Report
	writes             int
	reads              int

	observed   agent.Observed
	lookErr    error
	effectErr  error
	hold       bool // nothing that is begun comes to an end
	fail       map[string]agent.Progress
	listenCode []int            // what the next listeners exit with at once; none: they listen
	registered agent.Assignment // what the runner was configured by last
	poweredOff string
	jobsOf     string // whose job the second assignment is for; empty: it is a run
	standby    standbyLife
	inHook     string // the run whose job waits in the hook, since inHookAt
	inHookAt   time.Time
	ran        []string // the runs whose jobs the hook has let in
	effects    []string
	disk       disk

	attempts int // of effects
	calls    int
	crashAt  int // 0: never
	crashed  bool
	failAt   int // 0: never
}

type disk struct {
	memory  agent.Memory
	loadErr error
	saveErr error
	saves   int
	crash   func() // at every Save, before and after it; nil: never
}

func (d *disk) Load() (agent.Memory, error) { return d.memory, d.loadErr }

func (d *disk) Save(m agent.Memory) error {
	if d.crash != nil {
		d.crash()
		defer d.crash()
	}
	if d.saveErr != nil {
		return d.saveErr
	}
	d.memory, d.saves = m, d.saves+1
	return nil
}

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// errCrash unwinds a step: the process was killed.
var errCrash = errors.New("crash")

func newWorld() *world {
	at := start
	w := newWorldAt(func() time.Time { return at })
	w.sleepUntil = func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	return w
}

// newWorldAt is a world whose clock is the caller's.
func newWorldAt(clock func() time.Time) *world {
	start := clock()
	return &world{
		now: clock, fail: map[string]agent.Progress{},
		record: &lifecycle.Record{
			HostKey: "i-1", InstanceID: "i-1", State: lifecycle.StateCreated, RunID: "run-1", Repository: "acme/app",
			Assignment: 1, Version: 1, Threshold: start.Add(10 * time.Minute), MaxRuntime: 6 * time.Hour,
			RunnerName:   "remuda-1-i-1",
			Registration: &lifecycle.Registration{Kind: lifecycle.RegistrationToken, URL: "http://github/acme/app", Secret: "reg-token"},
		},
		observed: agent.Observed{BootID: "boot-1"},
	}
}

func (w *world) storeNow() time.Time { return w.now().Add(w.offset) }

// The owner of the record.

func (w *world) change(f func(r *lifecycle.Record)) {
	w.older = append(w.older, *w.record)
	r := *w.record
	f(&r)
	r.Version++
	w.record = &r
}

func (w *world) running() {
	w.change(func(r *lifecycle.Record) {
		r.State, r.Registration, r.Threshold = lifecycle.StateRunning, nil, w.storeNow().Add(r.MaxRuntime)
	})
}

func (w *world) release(token string) {
	w.change(func(r *lifecycle.Record) {
		r.State, r.RunID, r.Registration, r.Threshold = lifecycle.StateIdle, "", nil, w.storeNow().Add(2*time.Minute)
		r.Standby = nil
		r.Assignment++
		if token != "" {
			r.Registration = removeToken(token)
		}
	})
}

func removeToken(token string) *lifecycle.Registration {
	return &lifecycle.Registration{Kind: lifecycle.RegistrationRemove, URL: "http://github/acme/app", Secret: lifecycle.Secret(token)}
}

func (w *world) pool() {
	w.change(func(r *lifecycle.Record) {
		r.PooledAt, r.Threshold, r.Registration, r.RunnerName = w.storeNow(), w.storeNow().Add(5*time.Minute), nil, ""
		r.JobsOf = ""
	})
}

func (w *world) claim(run string) {
	w.change(func(r *lifecycle.Record) {
		r.State, r.RunID, r.PooledAt, r.Threshold = lifecycle.StateClaimed, run, time.Time{}, w.storeNow().Add(2*time.Minute)
		r.Assignment++
		r.RunnerName = lifecycle.RunnerName(r.Assignment, r.InstanceID)
		r.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationToken, URL: "http://github/acme/app", Secret: "reg-token-2"}
	})
}

// claimForJob is a claim by a turn of a job pool.
func (w *world) claimForJob(scope string) {
	w.claim("job:7")
	w.record.JobsOf = scope
	w.record.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationJIT, URL: "http://github/" + scope, Secret: "jit-config"}
}

func (w *world) terminate() {
	w.change(func(r *lifecycle.Record) {
		r.State, r.RunID, r.Threshold, r.Reason = lifecycle.StateTerminated, "", time.Time{}, "idle until its threshold"
		r.Assignment++
	})
}

// The store.

func (w *world) Record(_ context.Context, consistent bool) (lifecycle.Record, time.Time, error) {
	w.crash()
	w.reads++
	switch {
	case w.away || w.unreadable || w.failing():
		return lifecycle.Record{}, time.Time{}, fmt.Errorf("read record: %w", lifecycle.ErrUnavailable)
	case w.record == nil || (w.hides && !consistent):
		return lifecycle.Record{}, w.storeNow(), fmt.Errorf("read record: %w", lifecycle.ErrNotFound)
	case w.stale && !consistent && len(w.older) > 0 && (w.staleAlways || w.reads%3 != 0):
		return w.older[w.reads%len(w.older)], w.storeNow(), nil
	}
	return *w.record, w.storeNow(), nil
}

func (w *world) PutReport(_ context.Context, p lifecycle.Report) error {
	w.crash()
	if w.away || w.failing() {
		return fmt.Errorf("write report: %w", lifecycle.ErrUnavailable)
	}
	w.report, w.writes = p, w.writes+1
	return nil
}

// barrier makes what a test did before it visible to an agent that runs beside
// it: each waits while the other works, which the race detector cannot see.
func (w *world) barrier() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

// The host. Each effect happens, and then the agent may crash.

func (w *world) crash() {
	w.barrier()
	w.calls++
	if w.calls == w.crashAt {
		w.crashed = true
		panic(errCrash)
	}
}

func (w *world) failing() bool { return w.calls == w.failAt }

var errOnce = errors.New("no space left on device")

func (w *world) do(e string) error {
	w.crash()
	w.attempts++
	switch {
	case w.effectErr != nil:
		return w.effectErr
	case w.failing():
		return errOnce
	}
	w.effects = append(w.effects, e)
	return nil
}
