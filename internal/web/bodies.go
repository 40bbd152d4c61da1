package web

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The bounds of bodies that are being read. Each has up to maxDeliveryBytes.
const (
	maxBodies = 128
	// maxBodiesOfOne is how many come from one address. Behind a load balancer all deliveries may.
	maxBodiesOfOne = 96
	// slowAfter is when a body is slow. GitHub sends one in some milliseconds.
	slowAfter = 500 * time.Millisecond
)

// bodies are the bodies that are being read, and whose signature is not known yet. Any number of senders may send
// slowly, so where there are too many of them the slowest gives way to a new one.
type bodies struct {
	mu   sync.Mutex
	open []*incoming // in the order in which they began
}

// incoming is a body that is being read.
type incoming struct {
	address string
	began   time.Time
	control *http.ResponseController
	gaveWay bool
}

// begin admits a body. It returns nil if there are too many and none of them is slow yet.
func (b *bodies) begin(w http.ResponseWriter, r *http.Request) *incoming {
	in := &incoming{address: addressOf(r), began: time.Now(), control: http.NewResponseController(w)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.makeRoom(in, func(o *incoming) bool { return o.address == in.address }, maxBodiesOfOne) ||
		!b.makeRoom(in, func(*incoming) bool { return true }, maxBodies) {
		return nil
	}
	b.open = append(b.open, in)
	return in
}

// makeRoom makes the oldest body of a kind give way if there are as many as there may be. It returns false if that one is not slow.
func (b *bodies) makeRoom(in *incoming, of func(*incoming) bool, most int) bool {
	var same []*incoming
	for _, o := range b.open {
		if of(o) {
			same = append(same, o)
		}
	}
	if len(same) < most {
		return true
	}
	if oldest := same[0]; in.began.Sub(oldest.began) >= slowAfter {
		oldest.gaveWay = true
		_ = oldest.control.SetReadDeadline(in.began) // a connection that is gone reads nothing
		b.remove(oldest)
		return true
	}
	return false
}

// end ends the reading of a body, and reports whether it gave way.
func (b *bodies) end(in *incoming) (gaveWay bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(in)
	return in.gaveWay
}

func (b *bodies) remove(in *incoming) {
	b.open = slices.DeleteFunc(b.open, func(o *incoming) bool { return o == in })
}

// addressOf is the address that a call comes from, without its port.
func addressOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
