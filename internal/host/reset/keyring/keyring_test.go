package keyring

import (
	"strings"
	"testing"
)

const keyUsers = `    0:    11 10/10 4/1000000 65/25000000
  100:     2 2/2 2/200 26/20000
 1001:     6 5/4 3/200 41/20000
10010:     1 7/7 0/200 0/20000
`

func TestParseKeyUsers(t *testing.T) {
	t.Parallel()
	for uid, want := range map[int]int{0: 10, 100: 2, 1001: 5, 10010: 7, 1: 0, 10: 0} {
		if got, err := parseKeyUsers(keyUsers, uid); err != nil || got != want {
			t.Errorf("user %d: %d keys, error %v, want %d", uid, got, err, want)
		}
	}
	for _, text := range []string{"\n", "1001\n", "1001: 5\n", "1001: 5 x/y 0 0\n"} {
		if n, err := parseKeyUsers(text, 1001); err == nil {
			t.Errorf("%q: %d", text, n)
		}
	}
}

func FuzzParseKeyUsers(f *testing.F) {
	f.Add(keyUsers)
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseKeyUsers(text, 1001); err == nil && n != 0 && !strings.Contains(text, "1001") {
			t.Errorf("%d keys", n)
		}
	})
}
