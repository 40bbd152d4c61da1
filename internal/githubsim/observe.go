package githubsim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
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
// Route is "METHOD /path" or "/path" as /_standin/calls gives them, the end of such a path, or "*" for every route.
type fault struct {
	Route   string `json:"route"`
	Status  int    `json:"status"`
	Count   int    `json:"count"`
	DelayMS int    `json:"delay_ms"`
}

func (f fault) delay() time.Duration { return time.Duration(f.DelayMS) * time.Millisecond }

func (f fault) matches(pattern string) bool {
	_, path, _ := strings.Cut(pattern, " ")
	return f.Route == "*" || f.Route == pattern || f.Route == path || strings.HasSuffix(path, "/"+strings.TrimPrefix(f.Route, "/"))
}

type faultList struct {
	mu     sync.Mutex
	known  []string
	faults []fault
}

func (l *faultList) know(pattern string) { l.known = append(l.known, pattern) }

// add refuses a fault that could never strike.
func (l *faultList) add(f fault) error {
	f.Count = cmp.Or(f.Count, 1)
	switch {
	case f.Route == "" || !slices.ContainsFunc(l.known, f.matches):
		return problem(http.StatusUnprocessableEntity, "route %q is none that the stand-in has", f.Route)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return problem(http.StatusUnprocessableEntity, "status %d is not an error", f.Status)
	case f.Count < 0 || f.DelayMS < 0:
		return problem(http.StatusUnprocessableEntity, "count and delay_ms must not be negative")
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
	i := slices.IndexFunc(l.faults, func(f fault) bool { return f.matches(pattern) })
	if i < 0 {
		return fault{}
	}
	f := l.faults[i]
	if l.faults[i].Count--; l.faults[i].Count == 0 {
		l.faults = slices.Delete(l.faults, i, i+1)
	}
	return f
}

// rateLimiter is GitHub's primary rate limit, one for all callers.
type rateLimiter struct {
	limit int
	now   func() time.Time

	mu    sync.Mutex
	used  int
	reset time.Time
}

func (l *rateLimiter) use() (used int, reset time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); !now.Before(l.reset) {
		l.used, l.reset = 0, now.Add(time.Hour)
	}
	l.used++
	return l.used, l.reset
}

func (l *rateLimiter) wrap(s *Server, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		used, reset := l.use()
		h := w.Header()
		h.Set("X-RateLimit-Limit", strconv.Itoa(l.limit))
		h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, l.limit-used)))
		h.Set("X-RateLimit-Used", strconv.Itoa(min(used, l.limit)))
		h.Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
		h.Set("X-RateLimit-Resource", "core")
		if used > l.limit {
			s.writeError(w, r, problem(http.StatusForbidden, "API rate limit exceeded"))
			return
		}
		next.ServeHTTP(w, r)
	})
}
