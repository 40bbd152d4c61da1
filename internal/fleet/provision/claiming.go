package provision

import (
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// triedFor is how long a host that a request tried to claim is passed over by the other requests of this process, which found it in the index as
// well: longer than the index is late, and than a request takes to try the hosts that it found.
const triedFor = 10 * time.Second

// reserve keeps the other requests of this process from a host while this one claims it. A job-scoped request registers a runner first, and a
// later one of the same name would take the name over. Another replica's may, and then the host that was claimed finds its registration gone, and
// goes back. Requests that find the same hosts in the index would lose a write to each other for most of them.
func (p *Provision) reserve(m lifecycle.Message, now time.Time) bool {
	return !p.reserves() || p.env.claiming.begin(offerOf(m), now)
}

// reserves reports whether the request reserves the hosts that it claims.
func (p *Provision) reserves() bool { return p.jobScoped() || !p.queued() }

// unreserve ends a reservation. A host that the index showed is tried once: whether the claim took it or lost it, it is gone.
func (p *Provision) unreserve(m lifecycle.Message, tried bool, now time.Time) {
	switch {
	case !p.reserves():
	case tried && !p.queued():
		p.env.claiming.tried(offerOf(m), now)
	default:
		p.env.claiming.end(offerOf(m))
	}
}

// offer is a host that waits, and its assignment, which each claim ends.
type offer struct {
	hostKey    string
	assignment int64
}

func offerOf(m lifecycle.Message) offer { return offer{m.HostKey, m.Assignment} }

// claiming is the set of hosts that requests of this process are about to claim, or tried to claim a moment ago.
type claiming struct {
	mu     sync.Mutex
	offers map[offer]bool
	// past are those that were tried, in order of time.
	past []pastClaim
}

type pastClaim struct {
	offer
	at time.Time
}

// begin adds a host and reports whether it was not in the set.
func (c *claiming) begin(o offer, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.past) > 0 && now.Sub(c.past[0].at) >= triedFor {
		delete(c.offers, c.past[0].offer)
		c.past = c.past[1:]
	}
	if c.offers[o] {
		return false
	}
	if c.offers == nil {
		c.offers = map[offer]bool{}
	}
	c.offers[o] = true
	return true
}

// tried keeps a host in the set for triedFor.
func (c *claiming) tried(o offer, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past = append(c.past, pastClaim{o, now})
}

// end removes a host.
func (c *claiming) end(o offer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.offers, o)
}
