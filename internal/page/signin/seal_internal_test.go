package signin

import (
	"errors"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// What is longer than a browser keeps is not opened, though it was sealed here: unknown callers could have much of it read.
func TestWhatIsLongIsNotOpened(t *testing.T) {
	t.Parallel()
	s := seals{of: "x", keys: func() ([]lifecycle.Secret, error) {
		return []lifecycle.Secret{"a-key-of-thirty-two-bytes-or-more"}, nil
	}}
	for length, want := range map[int]error{3000: nil, maxSealed: errNotSealed} {
		sealed, err := s.seal("test", strings.Repeat("x", length))
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := s.open("test", sealed, &got); !errors.Is(err, want) || (err == nil) != (len(got) == length) {
			t.Errorf("%d bytes: %d bytes, %v, want %v", length, len(got), err, want)
		}
	}
}
