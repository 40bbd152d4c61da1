// Package recent keeps answers that cost many reads, so that callers who ask the same share one fetch.
package recent

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Question is what is asked, and how old its answer may be.
type Question struct {
	// Key tells it from the others of the same Answers.
	Key string
	Now time.Time
	// Young is for how long an answer is not fetched again.
	Young time.Duration
	// Old is until when an answer that is no longer young is still given, while another is fetched; 0: it is not.
	Old time.Duration
	// Within bounds a fetch.
	Within time.Duration
}

// Answers keeps the answers to questions. Its zero value is ready. It is safe for concurrent use.
type Answers[T any] struct {
	// Most is how many answers are kept at most, since callers may choose the questions; 0: 100.
	Most int

	fetches singleflight.Group
	mu      sync.Mutex
	known   map[string]kept[T]
}

type kept[T any] struct {
	answer T
	at     time.Time
}

func (k kept[T]) within(d time.Duration, now time.Time) bool {
	return !k.at.IsZero() && now.Sub(k.at).Abs() < d
}

// mostKept is the default of Answers.Most.
const mostKept = 100

// Get gives the answer to a question, as of the time when its fetch began. A fetch outlives the call that began it, since others may wait for it
// too.
func (a *Answers[T]) Get(ctx context.Context, q Question, fetch func(context.Context) (T, error)) (T, error) {
	fetched := a.fetches.DoChan(q.Key, func() (any, error) {
		if k := a.find(q.Key); k.within(q.Young, q.Now) {
			return k.answer, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.Within)
		defer cancel()
		answer, err := fetch(ctx)
		if err == nil {
			a.keep(q.Key, kept[T]{answer, q.Now})
		}
		return answer, err
	})
	if k := a.find(q.Key); k.within(q.Old, q.Now) {
		return k.answer, nil
	}
	select {
	case got := <-fetched:
		answer, _ := got.Val.(T)
		return answer, got.Err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

func (a *Answers[T]) find(key string) kept[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[key]
}

func (a *Answers[T]) keep(key string, k kept[T]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= cmp.Or(a.Most, mostKept) {
		a.known = map[string]kept[T]{}
	}
	a.known[key] = k
}
