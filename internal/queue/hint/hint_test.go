package hint_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/queue/hint"
)

func TestHandle(t *testing.T) {
	if id, receives, ok := hint.ParseHandle(hint.Handle(1234, 5)); id != 1234 || receives != 5 || !ok {
		t.Errorf("got %d, %d, %v, want 1234, 5, true", id, receives, ok)
	}
	for _, handle := range []string{"", ".", "1", "1.", ".1", "1.2.3", "a.1", "1.b", "99999999999999999999.1"} {
		if _, _, ok := hint.ParseHandle(handle); ok {
			t.Errorf("%q counts as a handle", handle)
		}
	}
}
