package chosen

import (
	"testing"
	"time"
)

// TestOperators: each does what it is named for, and another thing once its mutant is on.
func TestOperators(t *testing.T) {
	defer func(before int) { on = before }(on)
	for name, c := range map[string]struct {
		of        func(id, a, b int) any
		a, b      int
		off, isOn any
	}{
		"less":             {func(id, a, b int) any { return Less(id, a, b) }, 2, 2, false, true},
		"less or equal":    {func(id, a, b int) any { return LessOrEqual(id, a, b) }, 2, 2, true, false},
		"greater":          {func(id, a, b int) any { return Greater(id, a, b) }, 2, 2, false, true},
		"greater or equal": {func(id, a, b int) any { return GreaterOrEqual(id, a, b) }, 2, 2, true, false},
		"sum":              {func(id, a, b int) any { return Sum(id, a, b) }, 6, 3, 9, 3},
		"difference":       {func(id, a, b int) any { return Difference(id, a, b) }, 6, 3, 3, 9},
		"product":          {func(id, a, b int) any { return Product(id, a, b) }, 6, 3, 18, 2},
		"quotient":         {func(id, a, b int) any { return Quotient(id, a, b) }, 6, 3, 2, 18},
		"remainder":        {func(id, a, b int) any { return Remainder(id, a, b) }, 6, 3, 0, 18},
		"duration": {func(id, a, _ int) any { return Duration(id, time.Duration(a)) }, 6, 0,
			6 * time.Nanosecond, 12 * time.Nanosecond},
	} {
		on = -1
		if got := c.of(7, c.a, c.b); got != c.off {
			t.Errorf("%s: %v without the mutant, want %v", name, got, c.off)
		}
		on = 7
		if got := c.of(7, c.a, c.b); got != c.isOn {
			t.Errorf("%s: %v with the mutant, want %v", name, got, c.isOn)
		}
	}
}
