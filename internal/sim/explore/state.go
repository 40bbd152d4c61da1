package explore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// unit is the only duration: every threshold that is set now has passed one unit later.
const unit = 10 * time.Minute

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// state is everything there is at one moment.
type state struct {
	world world
	// ops are what the replicas do: callers' operations in the first two
	// places, sweeps in the last two.
	ops  [places]*node
	used used

	parent *state
	// what led here from the parent.
	kind, what string
}

// used counts against the bounds.
type used struct {
	asked                                                           [maxAsks]uint8
	releases, crashes, lost, failures, jobs, passes, drains, pauses uint8
}

const (
	replicas = 2
	places   = 2 * replicas
)

// places are the first place of an operation's sort, and the one after its last.
func (k *kind) places() (from, to int) {
	if k.sweep {
		return replicas, places
	}
	return 0, replicas
}

// free is a place for an operation other than the one taken; -1: there is none.
func (s *state) free(k *kind, taken int) int {
	from, to := k.places()
	for i := from; i < to; i++ {
		if s.ops[i] == nil && i != taken {
			return i
		}
	}
	return -1
}

// sweeping counts the sweeps; the one in the place taken counts in any case.
func (s *state) sweeping(taken int) int {
	n := 0
	for i := replicas; i < places; i++ {
		if s.ops[i] != nil || i == taken {
			n++
		}
	}
	return n
}

// crowded is the world with the operations counted in it, for the rules.
func (s *state) crowded(w world) world {
	n := 0
	for _, o := range s.ops[:replicas] {
		if o != nil && o.kind.provision {
			n++
		}
	}
	w[crowdCell] = crowd(n, s.sweeping(-1))
	return w
}

func crowd(provisioning, sweeping int) id { return id(provisioning + 8*sweeping) }

// print tells two states apart. Of 128 bits, so that no two of some million
// are taken for one by chance.
type print [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func printOf(b []byte) print { return print{maphash.Bytes(seeds[0], b), maphash.Bytes(seeds[1], b)} }

// appendWorld adds what the world means. What the agent of an ended host did is left
// out, since nothing depends on it.
func (x *explorer) appendWorld(b []byte, w *world) []byte {
	clock := w[clockCell]
	for c := range clockCell {
		n := x.values.meaning(w[c], clock)
		if c >= agentCell && c < agentCell+maxHosts {
			r, ok := at[lifecycle.Record](x.values, w, instanceCell+c-agentCell)
			if ok && r.State == lifecycle.StateTerminated {
				n = 0
			}
		}
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	return b
}

func (x *explorer) worldPrint(w *world) print {
	x.room[0] = x.appendWorld(x.room[0][:0], w)
	return printOf(x.room[0])
}

// print is that of the whole state. The replicas are alike, so it does not
// matter which of them does what.
func (x *explorer) print(s *state) print {
	b := x.appendWorld(x.room[0][:0], &s.world)
	u := s.used
	b = append(append(b, u.asked[:]...), u.releases, u.crashes, u.lost, u.failures, u.jobs, u.passes, u.drains, u.pauses)
	for i := 0; i < places; i += replicas {
		one, other := x.appendOp(x.room[1][:0], s, s.ops[i]), x.appendOp(x.room[2][:0], s, s.ops[i+1])
		x.room[1], x.room[2] = one, other
		if bytes.Compare(one, other) > 0 {
			one, other = other, one
		}
		b = append(append(b, one...), other...)
	}
	x.room[0] = b
	return printOf(b)
}

// appendOp adds how far an operation is, and whether what it knows is still so.
func (x *explorer) appendOp(b []byte, s *state, n *node) []byte {
	if n == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.NativeEndian.AppendUint32(b, x.values.numbered(&n.meanings, &n.text, s.world[clockCell]))
	for _, v := range n.known {
		fresh := byte(0)
		if x.values.all[s.world[v.row]].version == v.n {
			fresh = 1
		}
		b = append(b, fresh)
	}
	if len(n.text.handles) > 0 {
		box, _ := at[mail](x.values, &s.world, queueCell)
		for _, h := range n.text.handles {
			b = append(b, byte(slices.Index(box.handles, h)+1))
		}
	}
	return b
}

// policy has one unit for everything but the runtime, which a release must be
// able to outlast, and the margin of a claim: with it a host is claimed before
// its threshold and not after.
func policy() lifecycle.Policy {
	p := lifecycle.DefaultPolicy()
	for _, d := range []*time.Duration{
		&p.CreationTimeout, &p.ClaimTimeout, &p.ReleaseTimeout, &p.IdleTime, &p.UnattendedTimeout,
		&p.ReleasePoll, &p.DrainPoll, &p.EndPoll,
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

func pools(b Bounds) map[string]fleet.Pool {
	p := policy()
	if b.Hot {
		p.Standby = lifecycle.StandbyListening
	}
	if b.Stops {
		p.StoppedMaximum, p.StoppedTime = 1, unit
	}
	if b.Resets {
		p.Reset = statement.LevelRootVolume
	}
	return map[string]fleet.Pool{fleet.DefaultPool: {
		Name: fleet.DefaultPool, ResourceClasses: []string{className},
		UsageClasses: lifecycle.UsageClasses, Policy: p,
	}}
}

// initial is the world before the first request.
func (x *explorer) initial() *state {
	*x.ports = ports{x: x}
	p, box := x.ports, mail{}
	there := cloud{}
	for host := range x.bounds.Pooled {
		m := p.launch(&there, lifecycle.LaunchOrder{Token: fmt.Sprint("before ", host), RunID: "before", RequestID: "before"})
		q := lifecycle.Request{Repository: repository, RunID: "before", RequestID: "before", Kind: lifecycle.RequestByCaller, Spec: lifecycle.Spec{Pool: fleet.DefaultPool}}
		r := lifecycle.Launched(m, q, nil, epoch, policy())
		r.Version = 1
		for _, a := range []lifecycle.Action{lifecycle.ActionReady, lifecycle.ActionRelease, lifecycle.ActionPool} {
			r = must1(lifecycle.Apply(r, lifecycle.Decision{Action: a}, epoch, policy()))
			r.Version++
		}
		signal, registered := lifecycle.SignalRemoveRegOK, int64(1)
		if x.bounds.Hot {
			signal, registered = lifecycle.SignalRegOK, r.Assignment
			r.RunnerName = lifecycle.RunnerName(r.Assignment, r.InstanceID)
			r.Standby = &lifecycle.Standby{Assignment: r.Assignment, Label: "label", RunnerID: runnerID(host, r.Assignment)}
		}
		p.put(instanceCell+cell(host), r)
		p.put(agentCell+cell(host), agent{registered: registered, cleaned: r.Assignment})
		p.put(reportCell+cell(host), lifecycle.Report{HeartbeatAt: epoch, Assignment: r.Assignment, Signal: signal})
		if host >= x.bounds.Unsent {
			box.send(r.Message())
		}
	}
	p.put(queueCell, box)
	p.put(cloudCell, there)
	return &state{world: p.world}
}

// pass advances the clock by a unit: every threshold that was set before passes,
// hidden messages reappear, and machines that were ending are gone.
func (x *explorer) pass(w world) world {
	w[clockCell]++
	box, _ := at[mail](x.values, &w, queueCell)
	box = box.copied()
	for i := range box.messages {
		box.messages[i].hidden = false
	}
	w[queueCell] = x.values.id(box)
	there, _ := at[cloud](x.values, &w, cloudCell)
	there.machines = slices.Clone(there.machines)
	for i := range there.machines {
		if there.machines[i].State == lifecycle.MachineEnding {
			there.machines[i].State = lifecycle.MachineGone
		}
	}
	w[cloudCell] = x.values.id(there)
	return w
}

// beyond reports whether some host has had all the assignments that are explored.
func (x *explorer) beyond(s *state) bool {
	for host := range maxHosts {
		r, ok := at[lifecycle.Record](x.values, &s.world, instanceCell+cell(host))
		first := int64(1)
		if host < x.bounds.Pooled {
			first = 3 // the first two brought it into the pool
		}
		if ok && r.State != lifecycle.StateTerminated && r.Assignment-first+1 > x.bounds.Assignments {
			return true
		}
	}
	return false
}

// path is how the state came about.
func (s *state) path() []string {
	var path []string
	for ; s.parent != nil; s = s.parent {
		path = append(path, s.kind+" "+s.what)
		for i, n := range s.ops {
			if before := s.parent.ops[i]; n != nil && n != before && s.what != n.kind.name {
				path = append(path, "before that, reads by "+n.kind.name)
			}
		}
	}
	slices.Reverse(path)
	return path
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
