package page

import (
	"context"
	"sync"
	"time"
)

// recent keeps answers that cost many reads. One that is young is given again. One that is old is given again once more, while another is
// fetched, so that only the first look at a page waits.
type recent[T any] struct {
	// young is for how long an answer is not fetched again, and old until when it may be given at all.
	young, old time.Duration
	now        func() time.Time

	mu    sync.Mutex
	known map[string]*kept[T]
}

type kept[T any] struct {
	answer   T
	at       time.Time
	fetching bool
}

// mostKept bounds the answers, each of them to a question that callers choose.
const mostKept = 100

// get gives the answer to a question. The fetch of a second answer outlives the call, which has its own by then.
func (r *recent[T]) get(ctx context.Context, question string, fetch func(context.Context) (T, error)) (T, error) {
	r.mu.Lock()
	k, now := r.known[question], r.now()
	if k != nil && now.Sub(k.at).Abs() < r.old {
		answer := k.answer
		if now.Sub(k.at).Abs() >= r.young && !k.fetching {
			k.fetching = true
			go func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
				defer cancel()
				_, _ = r.fetch(ctx, question, fetch) // the next look at the page fetches it again, and says why it cannot
			}()
		}
		r.mu.Unlock()
		return answer, nil
	}
	r.mu.Unlock()
	return r.fetch(ctx, question, fetch)
}

func (r *recent[T]) fetch(ctx context.Context, question string, fetch func(context.Context) (T, error)) (T, error) {
	answer, err := fetch(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if k := r.known[question]; k != nil {
			k.fetching = false
		}
		return answer, err
	}
	if r.known == nil || len(r.known) >= mostKept {
		r.known = map[string]*kept[T]{}
	}
	r.known[question] = &kept[T]{answer: answer, at: r.now()}
	return answer, nil
}
