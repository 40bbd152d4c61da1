package fleet

import (
	"context"
	"sync"
)

// templates asks for the versions of the pools' launch templates, and remembers
// them: decisions go by what was last heard and cost no call. A launch asks, and
// the cloud sweep does, so a replica that does neither may pool a host that has
// drifted. The sweep retires it then.
type templates struct {
	ask func(ctx context.Context, pool string) (string, error) // nil: there are no versions

	mu    sync.Mutex
	heard map[string]string // by pool
}

// version asks for the current version of a pool's template.
func (t *templates) version(ctx context.Context, pool string) (string, error) {
	if t.ask == nil {
		return "", nil
	}
	version, err := t.ask(ctx, pool)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard == nil {
		t.heard = map[string]string{}
	}
	t.heard[pool] = version
	return version, nil
}

// last is what version last returned for a pool; empty: nothing was heard yet.
func (t *templates) last(pool string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heard[pool]
}
