package fleet_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/sweeps"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// How long the hosts of the day take for what they do by themselves. A boot is that of a
// launch template with an image of its own, from the call to the agent's first
// report. A host in the pool reads its record every 500 ms, one at work every 5 s:
// it learns of a claim, or of its release, after half of that.
const (
	dayBoot      = 60 * time.Second
	dayHears     = 250 * time.Millisecond
	dayHearsEnd  = 2500 * time.Millisecond
	dayRegisters = 2 * time.Second
	dayCleans    = 3 * time.Second
	dayHeartbeat = 15 * time.Second
	// dayRetry is when an operation that failed is tried again, as fleet.Drive does.
	dayRetry = 2 * time.Second
)

// workday is a world that lives through a day on one goroutine, so that the same
// day always comes out the same: the real operations and sweeps, step by step,
// and hosts and runs that do theirs between the steps.
type workday struct {
	*world
	queue []dayEvent // in order of time
	hosts map[string]*dayHost

	wanted int             // jobs that wait for a host or are on one
	waits  []time.Duration // of each run, until it had all its hosts
	worked time.Duration   // of all jobs
	// launched are all hosts, reused those that a run found ready, scaled those
	// that scale-down ended.
	launched, reused, scaled int
	looks                    []dayLook
	// scrapes are its metrics, and version is that of its runners; nil and empty in a day without.
	scrapes *scrapes
	version string
	// caches are those of its hosts; nil: they have none.
	caches *dayCaches
	// stoppedUntil is when controld is there again, and tolerant says that operations may fail: they are tried again.
	stoppedUntil time.Time
	tolerant     bool
}

type dayEvent struct {
	at time.Time
	do func(now time.Time)
}

// dayLook is the fleet in one minute.
type dayLook struct {
	at time.Time
	// wanted are the jobs that wait for a host or are on one; up the machines, idle
	// those of them that can be claimed, fresh the idle ones that no run has used.
	wanted, up, idle, fresh int
	// spent is the time of all machines since the day began.
	spent time.Duration
}

// dayHost is the agent of a host.
type dayHost struct {
	key    string
	bootAt time.Time
	// assignment is the last one that it has read; it answers at answerAt.
	assignment int64
	answerAt   time.Time
	// scaledDown: scale-down has begun to end it.
	scaledDown bool
}

// wakingStore tells the hosts of what is written about them, which their agents
// would read within a moment.
type wakingStore struct {
	store.Store
	wakes func(r lifecycle.Record)
}

func (s wakingStore) CreateInstance(ctx context.Context, r lifecycle.Record) error {
	err := s.Store.CreateInstance(ctx, r)
	if err == nil {
		s.wakes(r)
	}
	return err
}

func (s wakingStore) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	r, err := s.Store.UpdateInstance(ctx, r)
	if err == nil {
		s.wakes(r)
	}
	return r, err
}

func (s wakingStore) ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	r, err := s.Store.ClaimInstance(ctx, c)
	if err == nil {
		s.wakes(r)
	}
	return r, err
}

// newWorkday has one pool: with warm hosts, or without anything that waits.
func newWorkday(t *testing.T, warm *fleet.WarmPool, change ...func(*fleet.Options)) *workday {
	t.Helper()
	d := &workday{hosts: map[string]*dayHost{}}
	d.world = newWorld(t, append(d.options(warm, func(s store.Store) store.Store { return s }), change...)...)
	return d
}

// options are those of a day whose store is observed.
func (d *workday) options(warm *fleet.WarmPool, observed func(store.Store) store.Store) []func(*fleet.Options) {
	return []func(*fleet.Options){scalingDown(policy.ScaleDown{}), func(o *fleet.Options) {
		o.Store = wakingStore{observed(o.Store.(*memory.Store).Store), d.hears}
		o.AtOnce = 1 // all is on one goroutine
		o.ScaleDown.Scope = func(repository string) string { return strings.Split(repository, "/")[0] }
		p := pool(lifecycle.ReuseNone)
		if warm != nil {
			p = pool(lifecycle.ReuseSameOwner)
			p.Warm, p.Maximum = warm, warm.Policy.Maximum
		}
		// The memory store goes through all its rows for every question.
		p.Policy.ForgetAfter, o.Timing.KeepRequests = time.Hour, time.Hour
		o.Pools = map[string]fleet.Pool{"default": p}
	}}
}

// playThrough lives through the runs, from the beginning of their day until two hours
// after its end.
func (d *workday) playThrough(runs []dayRun, from time.Time) {
	time.Sleep(time.Until(from))
	d.drive(d.fleet.NewSweeper(), nil)
	d.arrive(runs)
	d.look(from)
	for end := from.Add(26 * time.Hour); d.queue[0].at.Before(end); {
		next := d.queue[0]
		d.queue = d.queue[1:]
		time.Sleep(time.Until(next.at))
		next.do(next.at)
	}
}

// arrive begins the first of the runs at its time, and then the others.
func (d *workday) arrive(runs []dayRun) {
	if len(runs) == 0 {
		return
	}
	d.at(runs[0].at, func(now time.Time) {
		d.begin(runs[0], now)
		d.arrive(runs[1:])
	})
}

// at has something done at a time, after what is to be done then already.
func (d *workday) at(at time.Time, do func(now time.Time)) {
	i, _ := slices.BinarySearchFunc(d.queue, at, func(e dayEvent, at time.Time) int {
		return cmp.Or(e.at.Compare(at), -1)
	})
	d.queue = slices.Insert(d.queue, i, dayEvent{at, do})
}

func (d *workday) after(wait time.Duration, do func(now time.Time)) { d.at(time.Now().Add(wait), do) }

// drive steps an operation as fleet.Drive does, and lets others act while it waits.
func (d *workday) drive(op fleet.Op, over func(now time.Time)) {
	var step func(time.Time)
	step = func(now time.Time) {
		if now.Before(d.stoppedUntil) {
			d.at(d.stoppedUntil, step)
			return
		}
		for {
			p, err := op.Step(d.t.Context(), now)
			switch {
			case err != nil && d.tolerant && triedAgain(op, err):
				d.after(dayRetry, step)
				return
			case err != nil && d.tolerant:
				over(now)
				return
			case err != nil:
				d.t.Fatalf("at %s: %v", now, err)
			case p.Done:
				over(now)
				return
			case p.Wait > 0:
				d.after(p.Wait, step)
				return
			}
		}
	}
	d.after(0, step)
}

// triedAgain reports whether an operation that failed is: the sweeper always, another one while what it needs is away.
func triedAgain(op fleet.Op, err error) bool {
	_, sweeper := op.(*sweeps.Sweeper)
	return sweeper || errors.Is(err, lifecycle.ErrUnavailable)
}

// begin asks for the hosts of a run and, once they are there, has their jobs done.
func (d *workday) begin(run dayRun, began time.Time) {
	d.wanted += len(run.jobs)
	p, err := d.fleet.NewProvision(fleet.Demand{
		Repository: run.repository, RunID: run.id, RequestID: "q-" + run.id,
		Spec: lifecycle.Spec{Count: len(run.jobs), ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.caches.asked(d, run)
	d.drive(p, func(now time.Time) {
		d.waits = append(d.waits, now.Sub(began))
		d.caches.got(run, p.Request())
		for _, taken := range p.Request().Taken {
			if taken.Reused {
				d.reused++
			}
		}
		d.work(run, p.Instances())
	})
}

// work has each job of a run done on a host of its own. The run ends with the
// last of them, and gives its hosts back.
func (d *workday) work(run dayRun, hosts []lifecycle.Record) {
	if len(hosts) != len(run.jobs) {
		d.t.Fatalf("run %s has %d hosts, want %d", run.id, len(hosts), len(run.jobs))
	}
	left := len(hosts)
	for i, h := range hosts {
		d.setBusy(h, true)
		d.after(run.jobs[i], func(time.Time) {
			d.setBusy(h, false)
			d.wanted--
			d.worked += run.jobs[i]
			if left--; left == 0 {
				d.drive(d.fleet.NewRelease(run.repository, run.id, 0, false), func(time.Time) {})
			}
		})
	}
}

// setBusy begins or ends a job: GitHub and the host's agent know at once.
func (d *workday) setBusy(h lifecycle.Record, busy bool) {
	d.busy[h.HostKey] = busy
	d.github.change(h.RunnerName, func(r *lifecycle.Runner) { r.Busy = busy })
	if host := d.hosts[h.HostKey]; host != nil {
		d.answerOf(host, time.Now())
	}
}

// hears is how a host takes a change of its record: a new one boots first.
func (d *workday) hears(r lifecycle.Record) {
	h := d.hosts[r.HostKey]
	if h == nil && r.State != lifecycle.StateTerminated {
		h = &dayHost{key: r.HostKey, bootAt: time.Now().Add(dayBoot)}
		d.hosts[r.HostKey] = h
		d.launched++
		d.at(h.bootAt, func(now time.Time) { d.heartbeat(h, now) })
		return
	}
	if h != nil {
		if r.State != lifecycle.StateTerminated { // which takes the mark away
			h.scaledDown = r.ScalingDown()
		}
		hears := dayHears
		if r.Releasing() {
			hears = dayHearsEnd
		}
		d.after(hears, func(now time.Time) { d.answerOf(h, now) })
	}
}

// heartbeat goes on for as long as there is the host.
func (d *workday) heartbeat(h *dayHost, now time.Time) {
	d.compute.Boot(h.key)
	if d.answerOf(h, now); d.hosts[h.key] == h {
		d.after(dayHeartbeat, func(now time.Time) { d.heartbeat(h, now) })
	}
}

// answerOf writes what the agent of a host says of the record as it is now.
func (d *workday) answerOf(h *dayHost, now time.Time) {
	r := d.record(h.key)
	switch {
	case d.hosts[h.key] != h:
		return
	case r.State == lifecycle.StateTerminated:
		d.gone(h, r)
		return
	case now.Before(h.bootAt), d.mute:
		return
	}
	if r.Assignment != h.assignment {
		takes := dayRegisters
		if r.Releasing() {
			takes = dayCleans
		}
		h.assignment, h.answerAt = r.Assignment, now.Add(takes)
		d.at(h.answerAt, func(now time.Time) { d.answerOf(h, now) })
	}
	p := lifecycle.Report{HostKey: h.key, HeartbeatAt: now, Assignment: r.Assignment}
	switch {
	case now.Before(h.answerAt):
	case r.JobsOf != "":
		p = d.hub.report(r)
	default:
		p = d.report(r)
	}
	p.RunnerVersion = d.version
	if p.Signal == lifecycle.SignalRemoveRegOK {
		d.caches.commit(r, now)
	}
	p.Caches = d.caches.of(h.key)
	if err := d.store.ForHost(h.key).PutReport(d.t.Context(), p); err != nil {
		d.t.Fatal(err)
	}
	if r.JobsOf != "" {
		d.moveJobs()
	}
}

// moveJobs lets jobs of job pools begin and end.
func (d *workday) moveJobs() {
	for _, j := range d.hub.turn() {
		d.hub.say(d.t.Context(), j)
		if j.Status == lifecycle.StatusInProgress {
			d.after(d.hub.jobs[j.ID].takes, func(time.Time) { d.moveJobs() })
		}
	}
}

// gone is a host that has ended.
func (d *workday) gone(h *dayHost, r lifecycle.Record) {
	if d.busy[h.key] {
		d.t.Errorf("%s was ended at its job: %s", r.InstanceID, r.Reason)
	}
	if h.scaledDown {
		d.scaled++
	}
	delete(d.hosts, h.key)
}

// look looks at the fleet, every minute of the day.
func (d *workday) look(now time.Time) {
	if d.scrapes != nil && !now.Before(d.stoppedUntil) {
		d.scrapes.take()
	} else if d.scrapes != nil {
		d.scrapes.miss()
	}
	l := dayLook{at: now, wanted: d.wanted, up: d.machines(), fresh: len(d.fresh())}
	for _, r := range d.records(lifecycle.StateIdle) {
		if r.Pooled() && !r.Retiring {
			l.idle++
		}
	}
	if n := len(d.looks); n > 0 {
		last := d.looks[n-1]
		l.spent = last.spent + time.Duration(last.up)*now.Sub(last.at)
	}
	if d.looks = append(d.looks, l); len(d.looks) <= 24*60 {
		d.after(time.Minute, d.look)
	}
}
