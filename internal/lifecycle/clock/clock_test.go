package clock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/clock"
)

func TestCheck(t *testing.T) {
	for _, right := range []time.Duration{0, time.Second, -time.Minute, time.Minute} {
		if err := clock.Check(right); err != nil {
			t.Errorf("%s: %v", right, err)
		}
	}
	for wrong, want := range map[time.Duration]string{
		-6 * time.Hour: "is 6h0m0s ahead of that of AWS", 61 * time.Second: "is 1m1s behind that of AWS",
	} {
		if err := clock.Check(wrong); !errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
