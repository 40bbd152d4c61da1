package rest

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Calls counts calls by route since the process began.
type Calls struct {
	mu     sync.Mutex
	counts map[string]int64
}

func NewCalls() *Calls { return &Calls{counts: map[string]int64{}} }

func (c *Calls) Add(route string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[route]++
}

type callCount struct {
	Method string `json:"method"`
	Route  string `json:"route"`
	Count  int64  `json:"count"`
}

func (c *Calls) List() []callCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []callCount{}
	for _, pattern := range slices.Sorted(maps.Keys(c.counts)) {
		method, path, _ := strings.Cut(pattern, " ")
		out = append(out, callCount{method, path, c.counts[pattern]})
	}
	return out
}
