package rest

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The resources that have rate limits of their own.
const (
	core          = "core"
	registrations = "actions_runner_registration"
)

// resourceOf is the resource that a call of a route counts against. Just-in-time configurations count as registrations
// (github-aws-runners/terraform-aws-github-runner#5137, "Primary rate limits", and actions/runner#1339, where GitHub's staff says it of
// config.sh and names 10,000 an hour). Registration tokens do not: actions/runner#1386 asks for it, and is open. What config.sh itself sends
// is not limited here: it calls with a registration token, and no client of the API sees its answers.
func resourceOf(route string) string {
	if strings.HasSuffix(route, "/generate-jitconfig") {
		return registrations
	}
	return core
}

// RateLimiter is GitHub's primary rate limit: a number of calls in an hour, for each credential and resource by itself.
type RateLimiter struct {
	limits map[string]int // by resource
	now    func() time.Time

	mu      sync.Mutex
	budgets map[caller]*budget
}

type caller struct{ credential, resource string }

type budget struct {
	used  int
	reset time.Time
}

// NewRateLimiter allows each credential so many calls and registrations in an hour.
func NewRateLimiter(calls, registered int, now func() time.Time) *RateLimiter {
	return &RateLimiter{limits: map[string]int{core: calls, registrations: registered}, now: now, budgets: map[caller]*budget{}}
}

// of is the budget of a credential in the present hour, which begins with its first call. The caller holds the lock.
func (l *RateLimiter) of(key caller) *budget {
	now := l.now()
	b := l.budgets[key]
	if b == nil || !now.Before(b.reset) {
		maps.DeleteFunc(l.budgets, func(_ caller, old *budget) bool { return !now.Before(old.reset) })
		b = &budget{reset: now.Add(time.Hour)}
		l.budgets[key] = b
	}
	return b
}

// Take reports whether the credential has a call left, and uses it up.
func (l *RateLimiter) Take(credential, route string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := caller{credential, resourceOf(route)}
	b := l.of(key)
	if b.used >= l.limits[key.resource] {
		return false
	}
	b.used++
	return true
}

// Return gives back a call that is free: one that was answered 304.
func (l *RateLimiter) Return(credential, route string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(caller{credential, resourceOf(route)})
	b.used = max(0, b.used-1)
}

// SetHeaders sets the rate limit headers that GitHub gives with every answer.
func (l *RateLimiter) SetHeaders(h http.Header, credential, route string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := caller{credential, resourceOf(route)}
	b, limit := l.of(key), l.limits[key.resource]
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(limit-b.used))
	h.Set("X-RateLimit-Used", strconv.Itoa(b.used))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(b.reset.Unix(), 10))
	h.Set("X-RateLimit-Resource", key.resource)
}
