package plural_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

func TestOf(t *testing.T) {
	for n, want := range map[int]string{0: "0 hosts are", 1: "1 host is", 2: "2 hosts are", 1000: "1000 hosts are"} {
		if got := plural.Of(n, "host is", "hosts are"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWord(t *testing.T) {
	for n, want := range map[int32]string{0: "runs", 1: "run", 2: "runs"} {
		if got := plural.Word(n, "run", "runs"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
