package checkrun_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
)

// TestCount: one that GitHub took is open, and one that is being made; one that it did not take is not.
func TestCount(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		check checkrun.Check
		want  int
	}{
		"open":                      {checkrun.Check{ID: 7}, 1},
		"being made":                {checkrun.Check{}, 1},
		"refused":                   {checkrun.Check{Refused: true}, 0},
		"open, and its end refused": {checkrun.Check{ID: 7, Refused: true}, 1},
	} {
		if got := (checkrun.Table{Open: []checkrun.Check{tt.check}}).Count(); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
