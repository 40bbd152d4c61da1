package line_test

import (
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle/line"
)

func TestFirst(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 200)
	for text, want := range map[string]string{
		"": "", "one": "one", " one\ntwo": "one", "one \x1b[31m": "one", "\xff": "\uFFFD", long: long, long + "b": long, long[1:] + "ü": long[1:] + "ü", long + "ü": long,
	} {
		if got := line.First(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
