// Package smalltest helps tests, and is not mutated.
package smalltest

import "testing"

// Positive fails a test that has no positive number.
func Positive(t *testing.T, n int) {
	if n <= 0 {
		t.Errorf("%d is not positive", n)
	}
}
