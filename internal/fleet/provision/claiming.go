package provision

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// reservedFor is how long a host is reserved for the request of this process that tries to claim it, and passed over by the others that found it in
// the index as well: longer than the index is late, and than a request takes to try the hosts that it found. A claim that hangs for longer keeps the
// host from no other request.
const reservedFor = 10 * time.Second

// reserve keeps the other requests of this process from a host while this one claims it. A job-scoped request registers a runner first, and a
// later one of the same name would take the name over. Another replica's may, and then the host that was claimed finds its registration gone, and
// goes back. Requests that find the same hosts in the index would lose a write to each other for most of them.
func (p *Provision) reserve(m lifecycle.Message, now time.Time) bool {
	return !p.reserves() || p.env.claiming.begin(offerOf(m), p.claimer(), now)
}

// claimer is the number by which the request has its hosts reserved.
func (p *Provision) claimer() claimer {
	if p.reservesAs == 0 {
		p.reservesAs = claimer(p.env.claiming.claimers.Add(1))
	}
	return p.reservesAs
}

// reserves reports whether the request reserves the hosts that it claims.
func (p *Provision) reserves() bool { return p.jobScoped() || !p.queued() }

// unreserve ends the reservation of a host that came from the queue, and of one that no claim was made of, as where GitHub registers no runner for it. One
// that the index showed lapses instead: whether a claim took the host or lost it, it is gone, and one without an answer is made again by this request alone.
func (p *Provision) unreserve(t *attempt) {
	unclaimed := t.err != nil && !t.made
	if p.reserves() && (p.queued() || unclaimed) {
		p.env.claiming.end(offerOf(t.Message))
	}
}

// offer is a host that waits, and its assignment, which each claim ends.
type offer struct {
	hostKey    string
	assignment int64
}

func offerOf(m lifecycle.Message) offer { return offer{m.HostKey, m.Assignment} }

// claimer numbers the requests of this process that reserve hosts. A reservation outlives its request, which it must not keep in memory.
type claimer int64

// claiming is the set of hosts that requests of this process are about to claim, or tried to claim a moment ago.
type claiming struct {
	claimers atomic.Int64

	mu    sync.Mutex
	tries map[offer]try
	// order has all that were added, in order of time, and maybe some that were removed.
	order []offer
}

// try is the request that has the host, and since when.
type try struct {
	by    claimer
	since time.Time
}

// begin adds a host for reservedFor and reports whether no other request has it.
func (c *claiming) begin(o offer, by claimer, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.order) > 0 && now.Sub(c.tries[c.order[0]].since) >= reservedFor {
		delete(c.tries, c.order[0])
		c.order = c.order[1:]
	}
	if t, reserved := c.tries[o]; reserved && t.by != by && now.Sub(t.since) < reservedFor {
		return false
	}
	if c.tries == nil {
		c.tries = map[offer]try{}
	}
	c.tries[o] = try{by, now}
	c.order = append(c.order, o)
	return true
}

// end removes a host.
func (c *claiming) end(o offer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tries, o)
}
