package awsfaults_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// fakeGitHub keeps registrations by name.
type fakeGitHub struct {
	mu      sync.Mutex
	runners map[string]lifecycle.Runner
	last    int64
}

func newGitHub() *fakeGitHub { return &fakeGitHub{runners: map[string]lifecycle.Runner{}} }

func token(kind lifecycle.RegistrationKind, repository string) lifecycle.Registration {
	return lifecycle.Registration{
		Kind: kind, URL: "https://github.test/" + repository,
		Secret: lifecycle.Secret(fmt.Sprint(kind)), ExpiresAt: time.Now().Add(24 * time.Hour),
	}
}

func (g *fakeGitHub) RegistrationToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return token(lifecycle.RegistrationToken, repository), nil
}

func (g *fakeGitHub) RemoveToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return token(lifecycle.RegistrationRemove, repository), nil
}

func (g *fakeGitHub) FindRunner(_ context.Context, _, name string) (lifecycle.Runner, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r, ok := g.runners[name]; ok {
		return r, nil
	}
	return lifecycle.Runner{}, lifecycle.ErrNotFound
}

func (g *fakeGitHub) SetLabels(context.Context, string, int64, []string) error { return nil }

func (g *fakeGitHub) DeleteRunner(_ context.Context, _ string, id int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, r := range g.runners {
		if r.ID == id {
			delete(g.runners, name)
		}
	}
	return nil
}

func (g *fakeGitHub) Runners(context.Context, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var page lifecycle.Page[lifecycle.Runner]
	for _, r := range g.runners {
		page.Items = append(page.Items, r)
	}
	return page, nil
}

func (g *fakeGitHub) register(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.runners[name]; !ok {
		g.last++
		g.runners[name] = lifecycle.Runner{ID: g.last, Name: name, Online: true}
	}
}

func (g *fakeGitHub) deregister(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.runners, name)
}
