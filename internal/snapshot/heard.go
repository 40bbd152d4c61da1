package snapshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// hub answers what GitHub answered when the snapshot was taken. A viewer can ask for nothing else of GitHub.
type hub struct {
	fleet.GitHub
	fleet.GitHubJobs
	scope func(string) string
	heard map[string][]lifecycle.Runner // by owner
}

// FindRunner finds a runner in what was listed.
func (h hub) FindRunner(_ context.Context, repository, name string) (lifecycle.Runner, error) {
	runners, asked := h.heard[h.scope(repository)]
	if !asked {
		return lifecycle.Runner{}, errors.New("the snapshot has no answer of GitHub about it")
	}
	for _, r := range runners {
		if r.Name == name {
			return r, nil
		}
	}
	return lifecycle.Runner{}, fmt.Errorf("runner %s: %w", name, lifecycle.ErrNotFound)
}

// Runner finds no runner: a plan of a snapshot has what GitHub answered.
func (hub) Runner(context.Context, string, int64) (lifecycle.Runner, error) {
	return lifecycle.Runner{}, lifecycle.ErrNotFound
}

// cloud answers what the cloud answered when the snapshot was taken. A viewer can ask for nothing else of it.
type cloud struct {
	fleet.Compute
	heard map[string]lifecycle.Machine
}

// Describe finds machines in what was heard.
func (c cloud) Describe(_ context.Context, ids []string) ([]lifecycle.Machine, error) {
	var found []lifecycle.Machine
	for _, id := range ids {
		m, ok := c.heard[id]
		if !ok {
			return nil, errors.New("the snapshot has no answer about it")
		}
		found = append(found, m)
	}
	return found, nil
}

// queue is there for the options of a fleet; no read uses it.
type queue struct{ fleet.Queue }
