package fromgithub

import (
	"io"
	"strings"
	"testing"
)

// TestABodyIsBounded: one of as many bytes is read whole, and a longer one is an error.
func TestABodyIsBounded(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{"": true, "1234": true, "12345": false} {
		got, err := io.ReadAll(&body{io.NopCloser(strings.NewReader(text)), 4})
		if good && (err != nil || string(got) != text) || !good && !isRefusal(err) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
