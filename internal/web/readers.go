package web

import "sync"

// maxReaders is how many bodies are read at once for one token. Bodies come as slowly as their senders like:
// what waits for one holds no place that callers with another token need, and the memory for them is bounded
// by how many tokens are good.
const maxReaders = 64

// readers counts the bodies that are being read, by token.
type readers struct {
	mu    sync.Mutex
	under map[string]int
}

func newReaders() *readers { return &readers{under: map[string]int{}} }

// begin takes a place until end is called; false: there is none. The token must
// be known to be good, or an unknown caller could fill the memory.
func (r *readers) begin(token string) (end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under[token] >= maxReaders {
		return nil, false
	}
	r.under[token]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.under[token]--; r.under[token] == 0 {
			delete(r.under, token)
		}
	}, true
}
