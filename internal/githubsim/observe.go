package githubsim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// callCounter counts calls by route since the process began.
type callCounter struct {
	mu     sync.Mutex
	counts map[string]int64
}

func newCallCounter() *callCounter { return &callCounter{counts: map[string]int64{}} }

func (c *callCounter) add(route string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[route]++
}

type callCount struct {
	Method string `json:"method"`
	Route  string `json:"route"`
	Count  int64  `json:"count"`
}

func (c *callCounter) list() []callCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []callCount{}
	for _, pattern := range slices.Sorted(maps.Keys(c.counts)) {
		method, path, _ := strings.Cut(pattern, " ")
		out = append(out, callCount{method, path, c.counts[pattern]})
	}
	return out
}

// fault makes the next Count calls of Route wait for DelayMS, and then answers them with Status, or as usual if that is 0.
// Route is "METHOD /path" or "/path" as /_standin/calls gives them, the end of such a path, or "*" for every route of GitHub's API.
type fault struct {
	Route   string `json:"route"`
	Status  int    `json:"status"`
	Count   int    `json:"count"`
	DelayMS int    `json:"delay_ms"`
	// RetryAfter is in seconds. With it a 403 or 429 is the secondary rate limit. Default: 1 with 403, 429 and 503, else none.
	RetryAfter int `json:"retry_after"`
}

func (f fault) delay() time.Duration { return time.Duration(f.DelayMS) * time.Millisecond }

func (f fault) matches(pattern string) bool {
	_, path, _ := strings.Cut(pattern, " ")
	return f.Route == pattern || f.Route == path || strings.HasSuffix(path, "/"+strings.TrimPrefix(f.Route, "/"))
}

type faultList struct {
	github map[string]bool // every route there is, and whether it is of GitHub's API

	mu     sync.Mutex
	faults []fault
}

func (l *faultList) know(pattern string, github bool) { l.github[pattern] = github }

func (l *faultList) strikes(f fault, pattern string) bool {
	return f.Route == "*" && l.github[pattern] || f.matches(pattern)
}

// clear takes back all that have not struck.
func (l *faultList) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = nil
}

// add refuses a fault that could never strike.
func (l *faultList) add(f fault) error {
	f.Count = cmp.Or(f.Count, 1)
	switch {
	case f.Route == "" || !slices.ContainsFunc(slices.Collect(maps.Keys(l.github)), func(p string) bool { return l.strikes(f, p) }):
		return problem(http.StatusUnprocessableEntity, "route %q is none that the stand-in has", f.Route)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return problem(http.StatusUnprocessableEntity, "status %d is not an error", f.Status)
	case f.Count < 0 || f.DelayMS < 0 || f.RetryAfter < 0:
		return problem(http.StatusUnprocessableEntity, "count, delay_ms and retry_after must not be negative")
	case f.Status == 0 && f.DelayMS == 0:
		return problem(http.StatusUnprocessableEntity, "a fault needs a status or a delay_ms")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, f)
	return nil
}

// take uses up one count of the oldest fault of the route; the zero fault does nothing.
func (l *faultList) take(pattern string) fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.faults, func(f fault) bool { return l.strikes(f, pattern) })
	if i < 0 {
		return fault{}
	}
	f := l.faults[i]
	if l.faults[i].Count--; l.faults[i].Count == 0 {
		l.faults = slices.Delete(l.faults, i, i+1)
	}
	return f
}
