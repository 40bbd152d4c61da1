package explain

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// warm says why a fresh host is there, which no run has asked for: how many its
// pool is to have, and by what. Empty for every other host.
func (t *hostExplainer) warm() string {
	r := t.Record
	if r.State != lifecycle.StateIdle || !r.Unused() {
		return ""
	}
	pool, ok := t.env.Pools[r.Pool]
	switch {
	case !ok:
		return fmt.Sprintf("It was launched ahead of need for pool %s, which the configuration does not have any more: it is retired.", r.Pool)
	case pool.Warm == nil:
		return fmt.Sprintf("It was launched ahead of need; by the configuration pool %s has no warm hosts any more: it is retired.", r.Pool)
	}
	wanted, of := pool.Warm.Policy.Wanted(t.now)
	return fmt.Sprintf("It was launched ahead of need: warm pool %s is to have %s ready by %s.", r.Pool, freshHosts(wanted), of)
}

func freshHosts(n int) string {
	switch n {
	case 0:
		return "no fresh host"
	case 1:
		return "1 fresh host"
	}
	return fmt.Sprintf("%d fresh hosts", n)
}
