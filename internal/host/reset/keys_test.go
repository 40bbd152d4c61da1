package reset

import (
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/host/reset/keyring"
)

const keyUsers = `    0:    11 10/10 4/1000000 65/25000000
  100:     2 2/2 2/200 26/20000
 1001:     6 5/4 3/200 41/20000
10010:     1 7/7 0/200 0/20000
`

// Keys that are left are a finding, unless this process may not ask for any: then those counted may be of another container.
func TestCheckKeys(t *testing.T) {
	t.Parallel()
	p := Plan{User: "runner", UID: 1001, Root: t.TempDir()}
	d := &Findings{}
	p.checkKeys(d) // of a kernel without
	put(t, p.at("/proc/key-users"), strings.ReplaceAll(keyUsers, " 1001:", " 1002:"))
	p.checkKeys(d)
	equal(t, "findings without keys", []string(nil), d.All)
	put(t, p.at("/proc/key-users"), keyUsers)
	p.checkKeys(d)
	var want []string
	if keyring.Available() == nil {
		want = []string{"user runner has 5 keys in the kernel: remove them with keyctl as that user"}
	}
	equal(t, "findings", want, d.All)
}
