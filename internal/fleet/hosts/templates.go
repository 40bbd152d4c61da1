package hosts

import (
	"context"
	"sync"
)

// Templates asks for the versions of the pools' launch templates, and remembers them: decisions
// use the last answer and cost no call. A launch and the cloud sweep ask, so a replica that
// does neither may pool a host whose template is outdated. The sweep retires it then.
type Templates struct {
	Ask func(ctx context.Context, pool string) (string, error) // nil: there are no versions

	mu    sync.Mutex
	heard map[string]string // by pool
}

// version asks for the current version of a pool's template.
func (t *Templates) version(ctx context.Context, pool string) (string, error) {
	if t.Ask == nil {
		return "", nil
	}
	version, err := t.Ask(ctx, pool)
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

// last is what version last returned for a pool; empty: there was no answer yet.
func (t *Templates) last(pool string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heard[pool]
}

// TemplateVersion asks for the current version of a pool's launch template; empty: there are no versions.
func (hs *Hosts) TemplateVersion(ctx context.Context, pool string) (string, error) {
	return hs.Templates.version(ctx, pool)
}
