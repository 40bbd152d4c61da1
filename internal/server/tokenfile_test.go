package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/server"
)

// A file of tokens that has not changed is not read for each call, and one that has
// is: at once where its times tell, and while it is young in any case.
func TestATokenFileIsReadWhenItChanges(t *testing.T) {
	first, second := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for name, test := range map[string]struct {
		age     time.Duration // of the file before and after
		touched time.Duration // how much later it was changed, by its times
		want    string
	}{
		"as old as it was":   {time.Hour, 0, first},
		"changed by a blink": {time.Hour, time.Millisecond, second},
		"young":              {0, 0, second},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tokens")
			at := time.Now().Add(-test.age)
			write := func(token string, at time.Time) {
				t.Helper()
				if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, at, at); err != nil {
					t.Fatal(err)
				}
			}
			source := server.TokenFile(path)
			reads := func() string {
				t.Helper()
				tokens, err := source()
				if err != nil || len(tokens) != 1 {
					t.Fatalf("%d tokens, %v", len(tokens), err)
				}
				return tokens[0].Reveal()
			}
			write(first, at)
			if got := reads(); got != first {
				t.Errorf("read %q first", got)
			}
			write(second, at.Add(test.touched))
			if got := reads(); got != test.want {
				t.Errorf("read %q then, want %q", got, test.want)
			}
		})
	}
}
