package nearest_test

import (
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle/nearest"
)

func TestOf(t *testing.T) {
	t.Parallel()
	known := []string{"webhook", "aws", "pools", "policy", "a"}
	for word, want := range map[string]string{
		"po":    "policy", // the first in their order that it is short for
		"poo":   "pools",
		"WEB":   "webhook",
		"a":     "a",
		"p":     "a", // one letter is short for nothing
		"asw":   "aws",
		"ploos": "pools",
		"plcy":  "policy",
		"hooks": "pools",
		"polls": "pools",
		"quite": "",
		"":      "a",

		strings.Repeat("p", 64) + "o": "",
	} {
		if got := nearest.Of(word, known); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
	for word, want := range map[string]string{"ab": "abbreviation", "cits": "bits"} { // the first of all, and the first of two that are as near
		if got := nearest.Of(word, []string{"wits", "pool", "bits", "abbreviation"}); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
	long := strings.Repeat("k", 64)
	if got := nearest.Of(long, []string{long + "ey"}); got != long+"ey" {
		t.Errorf("a word of 64 letters is near %q", got)
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "abc", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abd", 1}, {"abc", "ac", 1}, {"ac", "abc", 1},
		{"kitten", "sitting", 3}, {"ab", "ba", 2}, {"xabc", "abc", 1}, {"xyabc", "abc", 2},
	} {
		if got := nearest.Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("from %q to %q are %d letters, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
