package github

import (
	"cmp"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// assumedLimit is how many calls an hour a credential has until GitHub says: the least that an App's
	// installation or a token gets (docs.github.com, rate limits for the REST API).
	assumedLimit = 5000
	// keptShare is the part of the limit, one in so many, that is kept for
	// registrations: 500 calls of 5,000 bring up some hundred hosts.
	keptShare = 10
	// maxRest bounds a Retry-After: GitHub's windows are an hour.
	maxRest = time.Hour
	// maxWindow bounds how far ahead a reset is believed to be: that hour, by a clock that is off by another.
	maxWindow = 2 * time.Hour
)

// Budget is what GitHub lets a credential do, as it said last.
type Budget struct {
	// Credential is a name for people, such as "App 12345, installation 678".
	Credential string
	// Limit is calls an hour, and Remaining how many are left until ResetAt.
	// Credentials whose limit GitHub has not stated yet are left out.
	Limit, Remaining int
	ResetAt          time.Time
}

// budget is what a credential may do.
type budget struct {
	mu               sync.Mutex
	limit, remaining int // limit 0: GitHub has not said, or sets none
	resetAt          time.Time
	restUntil        time.Time // by Retry-After
	inFlight         int
}

// restError says why a call of a credential was not made, or was refused for
// now by GitHub, and when to try again.
type restError struct {
	why  string
	wait time.Duration
	// status is GitHub's; 0: the call was not made.
	status int
}

func (e *restError) Error() string { return e.why }

// admit tells why a call must not be made now; nil: it may.
func (b *budget) admit(l lane, now time.Time) *restError {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.limit > 0 && b.resetAt.After(now)
	switch {
	case b.restUntil.After(now):
		return &restError{why: "GitHub asked for a rest", wait: b.restUntil.Sub(now)}
	case known && b.remaining == 0:
		return &restError{why: "GitHub's rate limit is used up", wait: b.resetAt.Sub(now)}
	case known && l == housekeeping && b.remaining < b.limit/keptShare:
		return &restError{why: "what is left of GitHub's rate limit is kept for registrations", wait: b.resetAt.Sub(now)}
	}
	return nil
}

// left estimates how many calls the credential can make yet.
func (b *budget) left(now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.restUntil.After(now):
		return -1
	case b.limit == 0 && b.inFlight == 0:
		return math.MaxInt // one call tells
	case b.limit == 0 || !b.resetAt.After(now):
		return cmp.Or(b.limit, assumedLimit) - b.inFlight
	}
	return b.remaining - b.inFlight
}

// begin and end count the calls under way.
func (b *budget) begin() { b.count(1) }
func (b *budget) end()   { b.count(-1) }

func (b *budget) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight += n
}

// observe learns from an answer. Answers overtake each other, so within a window the least counts.
func (b *budget) observe(h http.Header, now time.Time) {
	limit, err := strconv.Atoi(h.Get("X-RateLimit-Limit"))
	remaining, err2 := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	reset, err3 := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil || err2 != nil || err3 != nil || limit <= 0 || remaining < 0 {
		return // an Enterprise Server may have no limits
	}
	if resource := h.Get("X-RateLimit-Resource"); resource != "" && resource != "core" {
		return // one of the small budgets beside, such as that of searches
	}
	at := time.Unix(reset, 0)
	if latest := now.Add(maxWindow); at.After(latest) {
		at = latest
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case at.Before(b.resetAt):
		return // an answer of the window before
	case at.Equal(b.resetAt):
		remaining = min(remaining, b.remaining)
	}
	b.limit, b.remaining, b.resetAt = limit, remaining, at
}

// rest keeps the credential from calling for a while.
func (b *budget) rest(wait time.Duration, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := now.Add(wait); until.After(b.restUntil) {
		b.restUntil = until
	}
}

// told is the budget for people; false while GitHub has said nothing.
func (b *budget) told(credential string) (Budget, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Budget{credential, b.limit, b.remaining, b.resetAt}, b.limit > 0
}
