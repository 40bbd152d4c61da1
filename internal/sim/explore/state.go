package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// unit is the one duration: whatever is set now has passed after one of them.
const unit = 10 * time.Minute

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// state is everything there is at one moment. It is never changed once it has
// been visited; branch makes the copy that the next choice changes.
type state struct {
	x      *explorer
	parent *state
	did    choice // what led here from the parent
	// own: the world is this state's own copy, and not yet its parent's.
	own bool
	// told is the world's part of the fingerprint, once it is known.
	told *text

	now      time.Time
	store    *memory.Store
	messages []message
	lastID   int
	machines []machine
	hosts    []host
	// ops are in the slots of the replicas: for each a caller's and a sweep.
	ops [slots]*op

	asked    []int // how often each request was made
	used     used
	launched int
}

// used counts against the bounds.
type used struct{ releases, crashes, lost, failures, jobs, passes int }

const (
	replicas = 2
	slots    = 2 * replicas
)

// callerSlot and sweepSlot are where a replica keeps what it does.
func callerSlot(replica int) int { return 2 * replica }
func sweepSlot(replica int) int  { return 2*replica + 1 }

// message is one in the queue. It is hidden from when it is received until a
// unit has passed.
type message struct {
	lifecycle.Message
	id, receives int
	hidden       bool
}

func (m message) handle() string { return fmt.Sprintf("%d.%d", m.id, m.receives) }

// machine is what the cloud has.
type machine struct {
	lifecycle.Machine
	token string
}

// host is a machine's agent with what is really there.
type host struct {
	key string
	// answer is what the agent has read and not yet answered.
	answer *lifecycle.Report
	// registered and cleaned are the assignments for which it last really
	// registered, and was really clean.
	registered, cleaned int64
	busy                bool
}

// policy has one unit for everything but the runtime, which a release must be
// able to outlast, and the margin of a claim: with it a host is claimed before
// its threshold and not after.
func policy() lifecycle.Policy {
	p := lifecycle.DefaultPolicy()
	for _, d := range []*time.Duration{
		&p.CreationTimeout, &p.ClaimTimeout, &p.ReleaseTimeout, &p.IdleTime, &p.UnattendedTimeout,
		&p.ReleaseLook, &p.DrainLook, &p.EndLook,
	} {
		*d = unit
	}
	p.MaxRuntime, p.ClaimMargin = 3*unit, unit/2
	return p
}

const (
	repository = "acme/app"
	className  = "small"
)

func pools() map[string]fleet.Pool {
	return map[string]fleet.Pool{fleet.DefaultPool: {
		Name: fleet.DefaultPool, ResourceClasses: []string{className},
		UsageClasses: lifecycle.UsageClasses, Policy: policy(),
	}}
}

// initial is the pool as it waits for the first request.
func (x *explorer) initial() *state {
	s := &state{x: x, now: epoch, asked: make([]int, len(x.bounds.Asks)), did: choice{kind: "start"}, own: true}
	s.store = memory.New(func() time.Time { return epoch })
	for i := range x.bounds.Pooled {
		m := s.launch(lifecycle.LaunchOrder{Token: fmt.Sprint("before ", i), RunID: "before", RequestID: "before"}, lifecycle.MachineRunning)
		q := lifecycle.Request{Repository: repository, RunID: "before", RequestID: "before", Spec: lifecycle.Spec{Pool: fleet.DefaultPool}}
		must(s.store.CreateInstance(background, lifecycle.Launched(m, q, nil, s.now, policy())))
		for _, a := range []lifecycle.Action{lifecycle.ActionReady, lifecycle.ActionRelease, lifecycle.ActionPool} {
			r := must1(s.store.Instance(background, m.HostKey))
			must1(s.store.UpdateInstance(background, must1(lifecycle.Apply(r, lifecycle.Decision{Action: a}, s.now, policy()))))
		}
		r := must1(s.store.Instance(background, m.HostKey))
		s.hosts[i].registered, s.hosts[i].cleaned = 1, r.Assignment
		must(s.store.ForHost(m.HostKey).PutReport(background, lifecycle.Report{
			HeartbeatAt: epoch, Assignment: r.Assignment, Signal: lifecycle.SignalRemoveRegOK,
		}))
		if i >= x.bounds.Unsent {
			s.send(r.Message())
		}
	}
	return s
}

// branch is a copy to change, by mutable.
func (s *state) branch(did choice) *state {
	n := *s
	n.parent, n.did, n.own = s, did, false
	return &n
}

// mutable makes the world this state's own: most steps only read, and share it.
func (s *state) mutable() *state {
	s.told = nil
	if s.own {
		return s
	}
	s.own = true
	s.store = s.store.Clone()
	s.messages = slices.Clone(s.messages)
	s.machines = slices.Clone(s.machines)
	s.hosts = slices.Clone(s.hosts)
	s.asked = slices.Clone(s.asked)
	return s
}

// path is how the state came about.
func (s *state) path() []string {
	var path []string
	for ; s != nil; s = s.parent {
		path = append(path, s.did.String())
	}
	slices.Reverse(path)
	return path
}

// broken ends the exploration.
func (s *state) broken(rule, format string, args ...any) {
	panic(&Violation{Rule: rule, What: fmt.Sprintf(format, args...), Path: s.path()})
}

// beyond: some host has had all the assignments that are explored.
func (x *explorer) beyond(s *state) bool {
	for _, r := range s.records() {
		first := int64(1)
		if x.isPooled(r.HostKey) {
			first = 3 // the first two brought it into the pool
		}
		if r.State != lifecycle.StateTerminated && r.Assignment-first+1 > x.bounds.Assignments {
			return true
		}
	}
	return false
}

// isPooled: the host waited in the pool at the start.
func (x *explorer) isPooled(key string) bool {
	for i := range x.bounds.Pooled {
		if key == hostKey(i) {
			return true
		}
	}
	return false
}

func hostKey(i int) string { return fmt.Sprintf("i-%d", i+1) }

func (s *state) records() []lifecycle.Record {
	return must1(s.store.ListInstances(background, lifecycle.Filter{}, lifecycle.PageOf{})).Items
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func must1[T any](v T, err error) T {
	must(err)
	return v
}
