package fleet_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// troubles is a world over weeks of runs and jobs, in which machines are taken back and lost, hosts fall silent, and controld crashes.
type troubles struct {
	*world
	r      *rand.Rand
	ctx    context.Context
	fate   *fate
	change []func(*fleet.Options)
	lastID int
	// replicas is how many began.
	replicas int
	// met is what happened, and how often. recorded are the machines of all hosts.
	met      map[string]int
	recorded map[string]bool
}

// saw counts something that happened.
func (m *troubles) saw(what string, happened bool) {
	if happened {
		m.set(func() { m.met[what]++ })
	}
}

// keptStore is a store whose replica may die at a write of what is kept, too.
type keptStore struct {
	mortalStore
	m *troubles
	// dies: it dies at the next write of a cycle.
	dies bool
}

func (s keptStore) CreateInstance(ctx context.Context, r lifecycle.Record) error {
	s.m.saw("of a job pool", r.Pool == jobPool)
	s.m.saw("spot", r.UsageClass == lifecycle.UsageSpot)
	s.m.saw("warm", r.Unused())
	s.m.set(func() { s.m.recorded[r.InstanceID] = true })
	return s.mortalStore.CreateInstance(ctx, r)
}

func (s keptStore) CreateReading(ctx context.Context, r meter.Reading) error {
	if s.dies {
		s.fate.strikeNext()
	}
	return s.fate.effect("keep a cycle", func() error { return s.Store.CreateReading(ctx, r) })
}

func (s keptStore) CreateJobTime(ctx context.Context, t meter.JobTime) error {
	return s.fate.effect("keep a job", func() error { return s.Store.CreateJobTime(ctx, t) })
}

// newReplica begins a replica that dies after some effects.
func (m *troubles) newReplica() {
	m.replicas++
	ctx, cancel := context.WithCancel(m.ctx)
	f := &fate{at: 1 + m.r.IntN(600), kill: cancel}
	m.fate = f
	m.fleet = m.newFleet(fmt.Sprint("replica-", m.replicas), append([]func(*fleet.Options){
		m.mortal(f, 3), func(o *fleet.Options) { o.Store = keptStore{mortalStore{m.store, f}, m, m.replicas%5 == 0} },
	}, m.change...)...)
	go m.fleet.ServeJobs(ctx)
	go m.fleet.Sweep(ctx)
}

// liveFor lets agents and GitHub live for a while, and starts a replica that died again.
func (m *troubles) liveFor(d, step time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(step) {
		if m.fate.isDead() {
			m.saw(m.fate.struck(), true)
			m.newReplica()
		}
		m.answer(m.ctx)
		for _, j := range m.hub.turn() {
			m.hub.say(m.ctx, j)
		}
	}
}

// driveAgain has an operation done, again by the next replica if one dies.
func (m *troubles) driveAgain(op func(*fleet.Fleet) fleet.Op) error {
	for {
		done := make(chan error, 1)
		f, fate := m.fleet, m.fate
		go func() { done <- f.Drive(m.ctx, op(f), patience) }()
		for {
			m.liveFor(2*time.Second, time.Second)
			select {
			case err := <-done:
				if err == nil || !fate.isDead() {
					return err
				}
			default:
				continue
			}
			break
		}
	}
}

// serveRun lets a run have hosts for a while, in which something may happen to one of them.
func (m *troubles) serveRun(n int) {
	d, works := monthsRun(m.r, n)
	d.Spec.Pool = []string{"default", "default", "once"}[m.r.IntN(3)]
	if m.r.IntN(3) == 0 {
		d.Spec.UsageClass = lifecycle.UsageSpot
	}
	if err := m.driveAgain(func(f *fleet.Fleet) fleet.Op {
		p, err := f.NewProvision(d)
		if err != nil {
			m.t.Fatal(err)
		}
		return p
	}); err != nil {
		m.saw("refused", true)
	}
	m.liveFor(works/2, time.Minute)
	if hosts := m.serving(d.RunID); len(hosts) > 0 && m.r.IntN(2) == 0 {
		m.mishap(hosts[m.r.IntN(len(hosts))])
	}
	m.liveFor(works/2, time.Minute)
	if err := m.driveAgain(func(f *fleet.Fleet) fleet.Op { return f.NewRelease(d.Repository, d.RunID, 0, true) }); err != nil {
		m.saw("not clean", true)
	}
}

// mishap has something happen to a host.
func (m *troubles) mishap(r lifecycle.Record) {
	switch {
	case r.UsageClass == lifecycle.UsageSpot:
		m.saw("taken back", true)
		m.set(func() {
			m.forge[r.HostKey] = func(p *lifecycle.Report) { p.InterruptionAt = time.Now().Add(2 * time.Minute) }
		})
		m.liveFor(2*time.Minute, 10*time.Second)
		m.compute.Kill(r.InstanceID)
	case m.r.IntN(2) == 0:
		m.saw("lost", true)
		m.compute.Kill(r.InstanceID)
		m.set(func() { m.deaf[r.HostKey] = true })
	default:
		m.saw("silent", true)
		m.set(func() { m.deaf[r.HostKey] = true })
	}
}

// serveJobs lets some jobs of the job pool run. One of their hosts may be lost.
func (m *troubles) serveJobs() {
	for range 1 + m.r.IntN(4) {
		m.lastID++
		m.hub.queue(m.ctx, lifecycle.WorkflowJob{
			ID: int64(m.lastID), RunID: fmt.Sprint(5000 + m.lastID/3), Name: "build", Labels: []string{"remuda-small"}, QueuedAt: time.Now(),
			Repository: []string{"acme/shop", "acme/site"}[m.lastID/3%2],
		}, time.Duration(1+m.r.IntN(15))*time.Minute)
	}
	for n := 0; m.hub.open() > 0 && n < 100; n++ {
		if n == 10 && m.r.IntN(3) == 0 {
			busy := slices.DeleteFunc(m.records(lifecycle.StateRunning), func(r lifecycle.Record) bool { return r.JobsOf == "" })
			if len(busy) > 0 {
				m.saw("lost at a job", true)
				m.compute.Kill(busy[0].InstanceID)
				m.set(func() { m.deaf[busy[0].HostKey] = true })
			}
		}
		m.liveFor(20*time.Second, 5*time.Second)
	}
}

// TestCostOfAMonthOfTroubles: the sums are the lifetimes of the machines, whatever happens to hosts and to controld, and however hosts came.
func TestCostOfAMonthOfTroubles(t *testing.T) {
	racepass.CoveredBy(t, "TestCostOfARun")
	synctest.Test(t, func(t *testing.T) {
		m := &troubles{world: jobWorld(t, 3), r: rand.New(rand.NewPCG(16, 24)), met: map[string]int{}, recorded: map[string]bool{}}
		m.change = []func(*fleet.Options){priced, withWarm(warmPool(1)), func(o *fleet.Options) {
			o.Timing = fleet.Timing{Due: time.Minute, Liveness: 10 * time.Minute, Cloud: time.Hour, Lease: time.Minute, Warm: 10 * time.Minute}
			for name, p := range o.Pools {
				p.Policy.Silence, p.Policy.IdleTime, p.Policy.WarmTime = 30*time.Minute, 3*time.Hour, 12*time.Hour
				p.Policy.ForgetAfter = 6 * time.Hour
				o.Pools[name] = p
			}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer time.Sleep(time.Minute)
		defer cancel()
		m.ctx = ctx
		m.newReplica()
		began := time.Now()
		for n := 0; time.Since(began) < 30*24*time.Hour; n++ {
			if m.r.IntN(3) == 0 {
				m.serveJobs()
			} else {
				m.serveRun(n)
			}
			m.liveFor(time.Duration(m.r.Int64N(int64(8*time.Hour))), 5*time.Minute)
		}
		m.liveFor(6*time.Hour, 5*time.Minute)
		m.wantLifetimes(ctx, began, slices.Collect(maps.Keys(m.recorded)))
		var met map[string]int
		m.set(func() { met = maps.Clone(m.met) })
		t.Log(met)
		for _, what := range []string{"taken back", "lost", "silent", "lost at a job", "keep a cycle", "of a job pool", "spot", "warm"} {
			if met[what] == 0 {
				t.Errorf("nothing of it was %q: %v", what, met)
			}
		}
		if m.replicas < 20 {
			t.Errorf("there were %d replicas", m.replicas)
		}
	})
}
