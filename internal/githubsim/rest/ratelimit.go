package rest

import (
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// RateLimiter is GitHub's primary rate limit: a number of calls in an hour, for each credential by itself.
type RateLimiter struct {
	limit int
	now   func() time.Time

	mu      sync.Mutex
	budgets map[string]*budget
}

type budget struct {
	used  int
	reset time.Time
}

func NewRateLimiter(limit int, now func() time.Time) *RateLimiter {
	return &RateLimiter{limit: limit, now: now, budgets: map[string]*budget{}}
}

// of is the budget of a credential in the present hour, which begins with its first call. The caller holds the lock.
func (l *RateLimiter) of(key string) *budget {
	now := l.now()
	b := l.budgets[key]
	if b == nil || !now.Before(b.reset) {
		maps.DeleteFunc(l.budgets, func(_ string, old *budget) bool { return !now.Before(old.reset) })
		b = &budget{reset: now.Add(time.Hour)}
		l.budgets[key] = b
	}
	return b
}

// Take reports whether the credential has a call left, and uses it up.
func (l *RateLimiter) Take(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(key)
	if b.used >= l.limit {
		return false
	}
	b.used++
	return true
}

// Return gives back a call that is free: one that was answered 304.
func (l *RateLimiter) Return(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(key)
	b.used = max(0, b.used-1)
}

// SetHeaders sets the rate limit headers that GitHub gives with every answer.
func (l *RateLimiter) SetHeaders(h http.Header, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(key)
	h.Set("X-RateLimit-Limit", strconv.Itoa(l.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(l.limit-b.used))
	h.Set("X-RateLimit-Used", strconv.Itoa(b.used))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(b.reset.Unix(), 10))
	h.Set("X-RateLimit-Resource", "core")
}
