package github

import (
	"bytes"
	"container/list"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// maxAnswers is how many bytes of answers are kept to be asked for again. A
	// page of 100 runners is below 200 KiB, mostly far below.
	maxAnswers = 16 << 20
	// maxAnswer is the largest that is kept.
	maxAnswer = 1 << 20
	// answersUnused is how long an answer is kept that is not asked for again: three times the interval at which sweeps list by default. Answers about one
	// run or one runner would fill the room otherwise, however small the fleet.
	answersUnused = 15 * time.Minute
)

// answers keeps what GitHub answered, for conditional requests. They count against no limit when nothing has
// changed (docs.github.com, best practices for the REST API). A new token makes new tags, so that an App's
// installation pays for each answer once an hour (github/docs#34689).
type answers = lru[string, *storedAnswer]

type storedAnswer struct {
	tag    string
	header http.Header
	body   []byte
}

// conditional makes the reads of one credential conditional on what is kept.
type conditional struct {
	credential string
	answers    *answers
	next       http.RoundTripper
}

// RoundTrip changes the request's header: it is the caller's own clone.
func (c *conditional) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return c.next.RoundTrip(r)
	}
	key := c.credential + " " + r.URL.String()
	old, _ := c.answers.get(key)
	if old != nil {
		r.Header.Set("If-None-Match", old.tag)
	}
	response, err := c.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusNotModified && old != nil:
		return old.again(response), nil
	case response.StatusCode == http.StatusOK && response.Header.Get("ETag") != "":
		return c.keep(key, response)
	}
	return response, nil
}

// keep reads an answer that has a tag, and stores it.
func (c *conditional) keep(key string, response *http.Response) (*http.Response, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if len(body) <= maxAnswer {
		c.answers.put(key, &storedAnswer{response.Header.Get("ETag"), response.Header.Clone(), body}, len(key)+len(body))
	}
	return response, nil
}

// again is the stored answer with what the new one says of limits.
func (s *storedAnswer) again(unchanged *http.Response) *http.Response {
	_ = unchanged.Body.Close() // it is empty
	response := *unchanged
	response.StatusCode, response.Status = http.StatusOK, "200 OK"
	response.Header = s.header.Clone()
	for name, values := range unchanged.Header {
		response.Header[name] = values
	}
	response.Header.Del("Content-Length")
	response.ContentLength = int64(len(s.body))
	response.Body = io.NopCloser(bytes.NewReader(s.body))
	return &response
}

// lru keeps the values that were used last, up to a total weight and for some time. It is safe for concurrent use.
type lru[K comparable, V any] struct {
	most   int           // what all values may weigh together
	unused time.Duration // a value that is not used for so long is dropped by a later put
	now    func() time.Time

	mu     sync.Mutex
	weight int
	order  list.List // of *lruEntry[K, V], the last used first
	at     map[K]*list.Element
}

type lruEntry[K comparable, V any] struct {
	key    K
	value  V
	weight int
	used   time.Time
}

func newLRU[K comparable, V any](most int, unused time.Duration) *lru[K, V] {
	return &lru[K, V]{most: most, unused: unused, now: time.Now, at: map[K]*list.Element{}}
}

func (l *lru[K, V]) get(k K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.at[k]
	if !ok {
		return value, false
	}
	l.order.MoveToFront(e)
	found := e.Value.(*lruEntry[K, V])
	found.used = l.now()
	return found.value, true
}

// put keeps a value in the place of the key's old one. One that is too heavy for all the room is not kept.
func (l *lru[K, V]) put(k K, v V, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(k)
	if weight > l.most {
		return
	}
	now := l.now()
	l.at[k] = l.order.PushFront(&lruEntry[K, V]{k, v, weight, now})
	l.weight += weight
	for last := l.last(); l.weight > l.most || now.Sub(last.used) > l.unused; last = l.last() {
		l.remove(last.key)
	}
}

// last is the value that was not used for the longest time.
func (l *lru[K, V]) last() *lruEntry[K, V] { return l.order.Back().Value.(*lruEntry[K, V]) }

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

// maxMemo bounds each memo: a fleet serves fewer repositories than that, and
// what is forgotten is asked for again.
const maxMemo = 10_000

// memoUnused is for how long an answer is remembered that is not asked for. Most are good for an hour at most.
const memoUnused = time.Hour

// memo remembers answers for a while, and asks for each of them one at a time.
type memo[V any] struct {
	kept   *lru[string, remembered[V]]
	asking singleflight.Group
}

type remembered[V any] struct {
	value V
	until time.Time
}

func newMemo[V any]() *memo[V] {
	return &memo[V]{kept: newLRU[string, remembered[V]](maxMemo, memoUnused)}
}

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
