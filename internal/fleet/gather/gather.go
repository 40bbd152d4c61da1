// Package gather makes one call to the cloud of the launches of several requests, where a call for each would have to
// wait for its turn.
//
// A launch that joins a batch says so in its own request's row, and waits. When the next call may be made, one of those
// that wait writes the row of the batch: it names the launches, its members, and holds the exact call. Then it makes the
// call, and writes into the row which machines came. The members have them in the order in which the row lists both, so
// every replica gives the same machine to the same request. Each member records its own machines. The row stays open
// until no member needs it, and any replica finishes what another has begun.
package gather

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/batch"
)

// AtMost is how many machines a batch orders at most. It bounds the size of its row, some 25 KB, and how many jobs wait
// again when a call fails as a whole.
const AtMost = 100

const (
	// look is how often a member looks whether the call of its batch was made.
	look = 100 * time.Millisecond
	// leaderPatience is how long a member waits for the call of another one before it makes the call itself. A shorter
	// time makes the call twice while EC2 still works on it; with a longer one the members wait for an operation that
	// was abandoned.
	leaderPatience = 20 * time.Second
	// settling is how long a machine may be missing from the answers of the cloud. It is longer than quota.ListedAfter.
	settling = 90 * time.Second
	// settlingLook is how often the machines of a batch are looked for that the cloud may not show yet.
	settlingLook = 2 * time.Second
	// keepRows is how long the row of a batch is kept once no member needs it.
	keepRows = 24 * time.Hour
	// forgetAfter is how long a process remembers a batch. After that a member reads the row.
	forgetAfter = 10 * time.Minute
)

// Batches are the batches of a fleet. The exported fields are its parts: they are set before the first call and not
// changed after it. It is safe for concurrent use.
type Batches struct {
	Store   ports.Store
	Compute ports.Machines
	Timing  ports.Timing
	Log     hclog.Logger
	Ops     *op.Driver

	// turns are the calls that may be made; nil: each launch has a call of its own.
	turns *rate.Limiter

	mu sync.Mutex
	// open are the batches that take members, by shape; known are all that this process began, by id.
	open  map[string]*gathering
	known map[string]*gathering
}

// New completes the batches of a fleet that may make calls at a rate. If it is zero each launch has a call of its own.
func New(r ports.Rate, b *Batches) *Batches {
	if r.PerSecond > 0 && r.Burst > 0 {
		b.turns = rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)
	}
	b.open, b.known = map[string]*gathering{}, map[string]*gathering{}
	return b
}

// gathering is a batch that this process began. Its fields are guarded by Batches.mu; those below row are changed by the
// leader alone.
type gathering struct {
	id, shape string
	began     time.Time
	// order is the launch of the first member, for the parameters that all have in common.
	order lifecycle.LaunchOrder
	// joined is how many machines are ordered by those that may become members, waiting are those that are. left are those
	// that are late: they do not come back.
	joined  int
	waiting []waiting
	left    []batch.Member
	// leader makes the call, since ledAt; the zero member: the batch still takes members.
	leader batch.Member
	ledAt  time.Time

	// row is the batch as it was last read or written. written: it is in the store. tried: a call may have been made.
	row            lifecycle.Request
	written, tried bool
	// made is what came of the call; nil: it is not known yet.
	made *made
}

// made is what came of the call of a batch.
type made struct {
	members  []batch.Member
	machines []lifecycle.Machine
	answered bool // the call itself returned the machines: they are not only what a listing shows
	short    string
	refused  error
}

// waiting is a member that waits for the call.
type waiting struct {
	batch.Member
	createdAt, deadline time.Time
}

func (g *gathering) led() bool { return g.leader != batch.Member{} }

// leave takes a member out of a batch that is not led yet. Its run was released, and another operation on its request may
// not know that yet and ask again.
func (g *gathering) leave(m batch.Member) {
	g.waiting = slices.DeleteFunc(g.waiting, func(w waiting) bool { return w.Member == m })
	if !slices.Contains(g.left, m) {
		g.left = append(g.left, m)
	}
}

// memberOf is the launch of a request as a member of a batch.
func memberOf(q lifecycle.Request) batch.Member {
	return batch.Member{Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Launch: q.Launch.Number, Count: q.Launch.Count}
}

// shapeOf is what launches of one call have in common: everything that does not say whose they are.
func shapeOf(o lifecycle.LaunchOrder) string {
	o.Token, o.RequestID, o.Number, o.Count, o.Repository, o.RunID, o.Batch = "", "", 0, 0, "", "", ""
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and numbers can be encoded
	}
	return string(text)
}

// Join returns the batch that the launch of q is to be part of, which the caller writes into the order. It is "" if the launch
// is to have a call of its own, since that need not wait.
func (b *Batches) Join(q lifecycle.Request, now time.Time) string {
	if b.turns == nil || q.Launch.Count > AtMost {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	shape := shapeOf(*q.Launch)
	g := b.open[shape]
	if g == nil && b.turns.AllowN(now, 1) {
		return ""
	}
	if g == nil || g.joined+q.Launch.Count > AtMost {
		b.forgetOld(now)
		g = &gathering{id: "batch-" + q.Launch.Token, shape: shape, began: now, order: *q.Launch}
		b.open[shape], b.known[g.id] = g, g
	}
	g.joined += q.Launch.Count
	return g.id
}

func (b *Batches) forgetOld(now time.Time) {
	for id, g := range b.known {
		if now.Sub(g.began) > forgetAfter {
			b.drop(g)
			delete(b.known, id)
		}
	}
}

// drop has a batch take no more members.
func (b *Batches) drop(g *gathering) {
	if b.open[g.shape] == g {
		delete(b.open, g.shape)
	}
}

// untilTurn is how long it takes until a call may be made.
func (b *Batches) untilTurn(now time.Time) time.Duration {
	r := b.turns.ReserveN(now, 1)
	defer r.CancelAt(now)
	return max(r.DelayFrom(now), time.Millisecond)
}

// lead makes a member the leader of a batch, which takes no other members from then on. Those whose requests are older have
// their machines first.
func (b *Batches) lead(g *gathering, m batch.Member, now time.Time) {
	b.drop(g)
	slices.SortStableFunc(g.waiting, func(x, y waiting) int {
		return x.createdAt.Compare(y.createdAt)
	})
	g.leader, g.ledAt, g.row = m, now, b.newRow(g, now)
}

// newRow is the row of a batch before its call.
func (b *Batches) newRow(g *gathering, now time.Time) lifecycle.Request {
	q := emptyRow(g.order.Pool, g.id, now)
	order := g.order
	order.RequestID, order.Repository, order.RunID, order.Number, order.Count, order.Batch = q.RequestID, q.Repository, q.RunID, 1, 0, ""
	for _, w := range g.waiting {
		q.Members = append(q.Members, w.Member)
		order.Count += w.Count
		if w.deadline.After(q.Deadline) {
			q.Deadline = w.deadline
		}
	}
	order.Token = tokenOf(g.id)
	q.Spec.ResourceClass, q.Spec.UsageClass, q.Spec.InstanceTypes = order.ResourceClass, order.UsageClass, order.InstanceTypes
	q.Spec.Count, q.Spec.MinimumCount = order.Count, order.Count
	q.Launch, q.Launches, q.DueAt = &order, 1, now.Add(b.Timing.Takeover)
	return q
}

// emptyRow is the row of a batch without members.
func emptyRow(pool, id string, now time.Time) lifecycle.Request {
	return lifecycle.Request{
		Repository: batch.Repository, RunID: batch.Run(pool), RequestID: id, Kind: lifecycle.RequestBatch,
		Spec: lifecycle.Spec{Pool: pool}, CreatedAt: now, Version: 1,
	}
}
