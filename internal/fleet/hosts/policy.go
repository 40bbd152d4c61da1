package hosts

import (
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Policy is that of a pool. A pool that is not configured has the default numbers, and its
// hosts are not reused.
func (hs *Hosts) Policy(pool string) lifecycle.Policy {
	if p, ok := hs.Pools[pool]; ok {
		return p.Policy
	}
	p := lifecycle.DefaultPolicy()
	p.Reuse = lifecycle.ReuseNone
	return p
}
