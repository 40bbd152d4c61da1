package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// hub is a GitHub that always answers, at once.
type hub struct {
	now   func() time.Time
	scope func(string) string
	last  int64
	// runners are those that are registered, by name, and names their names by id.
	runners map[string]*runner
	names   map[int64]string
}

type runner struct {
	lifecycle.Runner
	scope string
}

func newHub(scope func(string) string, now func() time.Time) *hub {
	return &hub{now: now, scope: scope, runners: map[string]*runner{}, names: map[int64]string{}}
}

// tokenLasts is how long a token of GitHub is good.
const tokenLasts = time.Hour

func (h *hub) token(kind lifecycle.RegistrationKind, repository string) lifecycle.Registration {
	return lifecycle.Registration{Kind: kind, URL: "https://github.invalid/" + h.scope(repository), Secret: "replayed", ExpiresAt: h.now().Add(tokenLasts)}
}

// RegistrationToken implements the port.
func (h *hub) RegistrationToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return h.token(lifecycle.RegistrationToken, repository), nil
}

// RemoveToken implements the port.
func (h *hub) RemoveToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return h.token(lifecycle.RegistrationRemove, repository), nil
}

// FindRunner finds a runner by its name.
func (h *hub) FindRunner(_ context.Context, _, name string) (lifecycle.Runner, error) {
	if r := h.runners[name]; r != nil {
		return r.Runner, nil
	}
	return lifecycle.Runner{}, fmt.Errorf("find runner %s: %w", name, lifecycle.ErrNotFound)
}

// Runner finds a runner by its id.
func (h *hub) Runner(ctx context.Context, repository string, id int64) (lifecycle.Runner, error) {
	return h.FindRunner(ctx, repository, h.names[id])
}

// DeleteRunner removes a runner.
func (h *hub) DeleteRunner(_ context.Context, _ string, id int64) error {
	name := h.names[id]
	if r := h.runners[name]; r != nil && r.Busy {
		return fmt.Errorf("delete runner %s: %w", name, lifecycle.ErrBusy)
	}
	h.deregister(name)
	return nil
}

// SetLabels finds the runner: its labels decide nothing here.
func (h *hub) SetLabels(_ context.Context, _ string, id int64, _ []string) error {
	if h.runners[h.names[id]] == nil {
		return fmt.Errorf("set labels of runner %d: %w", id, lifecycle.ErrNotFound)
	}
	return nil
}

// Runners lists the runners of an owner, by id, on one page.
func (h *hub) Runners(_ context.Context, repository string, _ lifecycle.PageOf) (page lifecycle.Page[lifecycle.Runner], _ error) {
	scope := h.scope(repository)
	for _, id := range slices.Sorted(maps.Keys(h.names)) {
		if r := h.runners[h.names[id]]; r.scope == scope {
			page.Items = append(page.Items, r.Runner)
		}
	}
	return page, nil
}

func (h *hub) register(name, repository string) {
	if h.runners[name] != nil || name == "" {
		return
	}
	h.last++
	h.runners[name] = &runner{lifecycle.Runner{ID: h.last, Name: name, Online: true}, h.scope(repository)}
	h.names[h.last] = name
}

func (h *hub) deregister(name string) {
	if r := h.runners[name]; r != nil {
		delete(h.names, r.ID)
		delete(h.runners, name)
	}
}

func (h *hub) setBusy(name string, busy bool) {
	if r := h.runners[name]; r != nil {
		r.Busy = busy
	}
}
