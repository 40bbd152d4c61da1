package slate

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

// Keys that are left are a doubt, unless this may not ask for any: then those that are counted may be of another container.
func TestCheckKeys(t *testing.T) {
	t.Parallel()
	p := Plan{User: "runner", UID: 1001, Root: t.TempDir()}
	d := &Doubts{}
	p.checkKeys(d) // of a kernel without
	put(t, p.at("/proc/key-users"), strings.ReplaceAll(keyUsers, " 1001:", " 1002:"))
	p.checkKeys(d)
	equal(t, "doubts without keys", []string(nil), d.All)
	put(t, p.at("/proc/key-users"), keyUsers)
	p.checkKeys(d)
	var want []string
	if keysAvailable() == nil {
		want = []string{"user runner has 5 keys in the kernel: remove them with keyctl as that user"}
	}
	equal(t, "doubts", want, d.All)
}
