package op_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/fleet/op"
)

// TestOneLine: a text of 600 bytes is whole. Of a longer one the rest is left out, and no half of a character stays.
func TestOneLine(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"lines":            {"one\n\ttwo  three ", "one two three"},
		"600 bytes":        {strings.Repeat("a", 600), strings.Repeat("a", 600)},
		"601 bytes":        {strings.Repeat("a", 601), strings.Repeat("a", 600) + "…"},
		"half a character": {strings.Repeat("a", 599) + "äb", strings.Repeat("a", 599) + "…"},
	} {
		if got := op.OneLine(errors.New(test.text)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
