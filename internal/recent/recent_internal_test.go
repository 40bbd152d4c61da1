package recent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An answer is fetched once while it is young, then once in the background, and again when it is too old to be given.
func TestRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers Answers[int]
		get := func(key string, fetch func(context.Context) (int, error)) (int, error) {
			return answers.Get(t.Context(), Question{Key: key, Now: time.Now(), Young: 10 * time.Second, Old: time.Minute, Within: time.Minute}, fetch)
		}
		fetched, down := 0, error(nil)
		fetch := func(context.Context) (int, error) {
			time.Sleep(time.Second)
			fetched++
			return fetched, down
		}
		want := func(what string, answer int, wrong error, took time.Duration) {
			t.Helper()
			began := time.Now()
			got, err := get("q", fetch)
			if (wrong == nil && got != answer) || !errors.Is(err, wrong) || time.Since(began) != took {
				t.Errorf("%s: %d (%v) after %s, want %d (%v) after %s", what, got, err, time.Since(began), answer, wrong, took)
			}
		}
		want("at first", 1, nil, time.Second)
		time.Sleep(8 * time.Second)
		want("while it is young", 1, nil, 0)
		time.Sleep(2 * time.Second)
		want("when it is not", 1, nil, 0)
		want("while another is fetched", 1, nil, 0)
		time.Sleep(2 * time.Second)
		want("once that is there", 2, nil, 0)
		if fetched != 2 {
			t.Errorf("it was fetched %d times", fetched)
		}
		down = errors.New("away")
		time.Sleep(30 * time.Second)
		want("while nothing can be fetched", 2, nil, 0)
		time.Sleep(2 * time.Second)
		want("and still", 2, nil, 0)
		time.Sleep(40 * time.Second)
		want("once it is too old", 0, down, time.Second)
		down = nil
		want("when it can be fetched again", 6, nil, time.Second)
		before, shared := fetched, make(chan error, 9)
		for range cap(shared) {
			go func() {
				_, err := get("another", fetch)
				shared <- err
			}()
		}
		for range cap(shared) {
			if err := <-shared; err != nil {
				t.Error(err)
			}
		}
		if fetched != before+1 {
			t.Errorf("what many ask at once was fetched %d times", fetched-before)
		}
		for most, kept := range map[int]int{0: mostKept, 3: 3} {
			answers.Most, answers.known = most, nil
			for n := range 3 * kept {
				if _, err := get(string(rune(n)), fetch); err != nil || len(answers.known) > kept {
					t.Fatalf("%d answers are kept, at most %d: %v", len(answers.known), most, err)
				}
			}
		}
	})
}

// A caller leaves when its own time is over. The fetch that it began goes on for the others, within its bound.
func TestCallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers Answers[int]
		fetched := 0
		get := func(ctx context.Context, takes time.Duration) (int, error) {
			return answers.Get(ctx, Question{Now: time.Now(), Young: time.Hour, Within: time.Minute}, func(ctx context.Context) (int, error) {
				select {
				case <-time.After(takes):
					fetched++
					return fetched, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
		}
		began := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := get(short, 2*time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("a caller with a second: %v after %s", err, time.Since(began))
		}
		if _, err := get(t.Context(), time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("a caller who shares the fetch: %v after %s, want the end of it", err, time.Since(began))
		}
		short, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := get(short, 5*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller with a second: %v", err)
		}
		if got, err := get(t.Context(), time.Second); err != nil || got != 1 || fetched != 1 {
			t.Errorf("the answer of the fetch that went on: %d (%v) of %d", got, err, fetched)
		}
	})
}
