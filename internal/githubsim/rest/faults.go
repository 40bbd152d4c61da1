package rest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault makes the next Count calls of Route wait for DelayMS, and then answers them with Status, or as usual if that is 0.
// Route is "METHOD /path" or "/path" as /_standin/calls gives them, the end of such a path, or "*" for every route of GitHub's API.
type Fault struct {
	Route   string `json:"route"`
	Status  int    `json:"status"`
	Count   int    `json:"count"`
	DelayMS int    `json:"delay_ms"`
	// RetryAfter is in seconds. With it a 403 or 429 is the secondary rate limit. Default: 1 with 403, 429 and 503, else none.
	RetryAfter int `json:"retry_after"`
}

func (f Fault) Delay() time.Duration { return time.Duration(f.DelayMS) * time.Millisecond }

func (f Fault) matches(pattern string) bool {
	_, path, _ := strings.Cut(pattern, " ")
	return f.Route == pattern || f.Route == path || strings.HasSuffix(path, "/"+strings.TrimPrefix(f.Route, "/"))
}

type Faults struct {
	github map[string]bool // every route there is, and whether it is of GitHub's API

	mu      sync.Mutex
	faults  []Fault
	cleared chan struct{} // closed by the next Clear
}

func (l *Faults) Know(pattern string, github bool) { l.github[pattern] = github }

func (l *Faults) strikes(f Fault, pattern string) bool {
	return f.Route == "*" && l.github[pattern] || f.matches(pattern)
}

// Clear takes back all that have not struck, and ends the delays of those that have.
func (l *Faults) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = nil
	close(l.cleared)
	l.cleared = make(chan struct{})
}

// Cleared is closed by the next Clear.
func (l *Faults) Cleared() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cleared
}

// Add refuses a fault that could never strike.
func (l *Faults) Add(f Fault) error {
	f.Count = cmp.Or(f.Count, 1)
	switch {
	case f.Route == "" || !slices.ContainsFunc(slices.Collect(maps.Keys(l.github)), func(p string) bool { return l.strikes(f, p) }):
		return Problem(http.StatusUnprocessableEntity, "route %q is none that the stand-in has", f.Route)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return Problem(http.StatusUnprocessableEntity, "status %d is not an error", f.Status)
	case f.Count < 0 || f.DelayMS < 0 || f.RetryAfter < 0:
		return Problem(http.StatusUnprocessableEntity, "count, delay_ms and retry_after must not be negative")
	case f.Status == 0 && f.DelayMS == 0:
		return Problem(http.StatusUnprocessableEntity, "a fault needs a status or a delay_ms")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, f)
	return nil
}

// Take uses up one count of the oldest fault of the route; the zero fault does nothing.
func (l *Faults) Take(pattern string) Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.faults, func(f Fault) bool { return l.strikes(f, pattern) })
	if i < 0 {
		return Fault{}
	}
	f := l.faults[i]
	if l.faults[i].Count--; l.faults[i].Count == 0 {
		l.faults = slices.Delete(l.faults, i, i+1)
	}
	return f
}

func NewFaults() *Faults { return &Faults{github: map[string]bool{}, cleared: make(chan struct{})} }
