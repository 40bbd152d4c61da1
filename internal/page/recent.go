package page

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// recent keeps answers that cost many reads. One that is young is given again. One that is old is given again once more, while another is
// fetched, so that only the first look at a page waits. Who asks the same at the same time shares one fetch.
type recent[T any] struct {
	// young is for how long an answer is not fetched again, and old until when it may be given at all.
	young, old time.Duration
	now        func() time.Time

	fetches singleflight.Group
	mu      sync.Mutex
	known   map[string]kept[T]
}

type kept[T any] struct {
	answer T
	at     time.Time
}

// mostKept bounds the answers, each of them to a question that callers choose.
const mostKept = 100

// get gives the answer to a question. A fetch outlives the call that began it, since others may wait for it too.
func (r *recent[T]) get(ctx context.Context, question string, fetch func(context.Context) (T, error)) (T, error) {
	r.mu.Lock()
	k, is := r.known[question]
	r.mu.Unlock()
	age := r.now().Sub(k.at).Abs()
	if is && age < r.young {
		return k.answer, nil
	}
	fetched := r.fetches.DoChan(question, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
		defer cancel()
		answer, err := fetch(ctx)
		if err == nil {
			r.keep(question, answer)
		}
		return answer, err
	})
	if is && age < r.old {
		return k.answer, nil
	}
	select {
	case got := <-fetched:
		answer, _ := got.Val.(T)
		return answer, got.Err
	case <-ctx.Done():
		return k.answer, context.Cause(ctx)
	}
}

func (r *recent[T]) keep(question string, answer T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= mostKept {
		r.known = map[string]kept[T]{}
	}
	r.known[question] = kept[T]{answer, r.now()}
}
