// Package small has one mutant or a few of each kind, and tests that find most of them.
package small

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// pause is a constant, which stays what it is; where it is used it may be longer.
const pause = 2 * time.Second

var patience = pause

// Grown says whether an age is enough. The age at which it begins is not tested.
func Grown(age int) bool { return age >= 18 }

// Within says whether a number is in a range.
func Within(n, low, high int) bool { return n >= low && n < high }

// Any stops at the first: the second one of nothing would panic.
func Any(first bool, second func() bool) bool { return first || second() }

// Mean divides what it has added.
func Mean(of ...float64) (float64, error) {
	if len(of) == 0 {
		slog.Info("no mean", "numbers", len(of)+0)
		return 0, errors.New("no numbers")
	}
	sum, err := 0.0, error(nil)
	_, err = fmt.Sscan("0", &sum)
	if err != nil {
		return 0, err
	}
	for _, f := range of {
		if f < 0 {
			continue
		}
		sum += f
	}
	return sum / float64(len(of)), nil
}

// Countdown loses its end when it counts up.
func Countdown(n uint64) (steps int) {
	for n > 0 {
		n--
		steps++
	}
	return steps
}

// Same returns its own text. That it is text already makes no difference.
func Same(s string) string {
	if s != fmt.Sprint(s) {
		s = fmt.Sprint(s)
	}
	return s
}

// Wait says how long something waits, in a test of this package.
func Wait(tries int) time.Duration { return time.Duration(tries)*time.Second + patience }

// Until has a loop without a condition, so that nothing follows it.
func Until(n int) int {
	for {
		if n++; n%7 != 0 {
			continue
		}
		return n
	}
}

// Unused has no test.
func Unused(done bool) bool {
	if !done {
		panic("it is never called so")
	}
	return true
}
