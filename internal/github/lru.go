package github

import (
	"container/list"
	"sync"
)

// lru keeps the values that were used last, up to a total weight. It is safe for concurrent use.
type lru[K comparable, V any] struct {
	most int // what all values may weigh together

	mu     sync.Mutex
	weight int
	order  list.List // of *lruEntry[K, V], the last used first
	at     map[K]*list.Element
}

type lruEntry[K comparable, V any] struct {
	key    K
	value  V
	weight int
}

func newLRU[K comparable, V any](most int) *lru[K, V] {
	return &lru[K, V]{most: most, at: map[K]*list.Element{}}
}

func (l *lru[K, V]) get(k K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.at[k]
	if !ok {
		return value, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*lruEntry[K, V]).value, true
}

// put keeps a value in the place of the key's old one. One that is too heavy for all the room is not kept.
func (l *lru[K, V]) put(k K, v V, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(k)
	if weight > l.most {
		return
	}
	l.at[k] = l.order.PushFront(&lruEntry[K, V]{k, v, weight})
	for l.weight += weight; l.weight > l.most; {
		l.remove(l.order.Back().Value.(*lruEntry[K, V]).key)
	}
}

func (l *lru[K, V]) drop(k K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(k)
}

// clear drops everything.
func (l *lru[K, V]) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.weight = 0
	l.order.Init()
	clear(l.at)
}

func (l *lru[K, V]) remove(k K) {
	if e, ok := l.at[k]; ok {
		l.weight -= e.Value.(*lruEntry[K, V]).weight
		l.order.Remove(e)
		delete(l.at, k)
	}
}
