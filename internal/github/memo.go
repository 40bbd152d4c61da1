package github

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
)

// maxMemo bounds each memo: a fleet serves fewer repositories than that, and
// what is forgotten is asked for again.
const maxMemo = 10_000

// memo remembers answers for a while, and asks for each of them one at a time.
type memo[V any] struct {
	kept   *lru[string, remembered[V]]
	asking singleflight.Group
}

type remembered[V any] struct {
	value V
	until time.Time
}

func newMemo[V any]() *memo[V] { return &memo[V]{kept: newLRU[string, remembered[V]](maxMemo)} }

// get returns what is remembered for the key, or asks: ask says until when its
// answer is good. Errors are not remembered.
func (m *memo[V]) get(ctx context.Context, key string, ask func(context.Context) (V, time.Time, error)) (V, error) {
	if v, ok := m.recall(key); ok {
		return v, nil
	}
	// Callers share one question. None of them may end it for the others, so it
	// goes on without them; its own deadline bounds it.
	shared := m.asking.DoChan(key, func() (any, error) {
		if v, ok := m.recall(key); ok {
			return v, nil // the question that ended just before this one began
		}
		v, until, err := ask(context.WithoutCancel(ctx))
		if err == nil {
			m.kept.put(key, remembered[V]{v, until}, 1)
		}
		return v, err
	})
	var none V
	select {
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case result := <-shared:
		if result.Err != nil {
			return none, result.Err
		}
		return result.Val.(V), nil
	}
}

func (m *memo[V]) recall(key string) (V, bool) {
	r, ok := m.kept.get(key)
	return r.value, ok && !time.Now().After(r.until)
}

// forget makes the next get of the key ask.
func (m *memo[V]) forget(key string) { m.kept.drop(key) }

// clear forgets everything.
func (m *memo[V]) clear() { m.kept.clear() }
