package github_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/github"
)

// Of 75 calls for labels at once, 60 are made. The others are not made to wait: 13 have a turn within ten seconds, which are theirs when
// they come again, and two have none.
func TestACallForLabelsKeepsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := newClient(t, github.Config{Transport: direct{newFake()}}), time.Now()
		call := func(id int) error { return c.SetLabels(t.Context(), "acme/app", int64(1000+id), []string{"1"}) }
		errs := make([]error, 75)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { errs[i] = call(i) })
		}
		all.Wait()
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the calls took %s", waited)
		}
		made, soon, late := 0, []int{}, 0
		for i, err := range errs {
			switch wait := waitOf(err); {
			case err == nil:
				made++
			case !strings.Contains(err.Error(), "secondary rate limits"):
				t.Error(err)
			case wait < 10*time.Second:
				soon = append(soon, i)
			default:
				late++
			}
		}
		if made != 60 || len(soon) != 13 || late != 2 {
			t.Errorf("%d calls were made, %d have a turn soon and %d have none; want 60, 13 and 2", made, len(soon), late)
		}
		for time.Sleep(10 * time.Second); len(soon) > 0; soon = soon[1:] {
			if err := call(soon[0]); err != nil {
				t.Errorf("a call that comes again for its turn: %v", err)
			}
		}
		if err := call(0); err == nil || waitOf(err) < time.Second {
			t.Errorf("another call takes a turn of theirs: %v", err)
		}
	})
}
