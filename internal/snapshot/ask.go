package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
)

// listener hears what GitHub answers to a scale-down, so that it is asked once.
type listener struct {
	fleet.GitHub
	scope func(string) string
	// heard are the runners of owners, and all says which owners were listed to the end.
	heard map[string][]lifecycle.Runner
	all   map[string]bool
}

// Runners asks GitHub.
func (l *listener) Runners(ctx context.Context, repository string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	got, err := l.GitHub.Runners(ctx, repository, page)
	if err != nil {
		return got, err
	}
	owner := l.scope(repository)
	if page.After == "" {
		l.heard[owner] = nil
	}
	l.heard[owner] = append(l.heard[owner], got.Items...)
	l.all[owner] = got.Next == ""
	return got, nil
}

// ask asks the cloud about the machines, and GitHub about those runners that no scale-down asks for. Without an answer a
// snapshot is of use too.
func (t *taker) ask(ctx context.Context) {
	if err := t.askCloud(ctx); err != nil {
		t.notes = append(t.notes, fmt.Sprintf("what the cloud says of the machines: %v", err))
	}
	for _, r := range append(slices.Clone(t.live), t.ended...) {
		owner := t.hub.scope(r.Repository)
		_, asked := t.hub.all[owner]
		if r.RunnerName == "" || asked {
			continue
		}
		t.hub.all[owner] = false
		list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
			return t.hub.Runners(ctx, r.Repository, page)
		}
		for _, err := range listing.All(lifecycle.PageOf{}, list) {
			if err != nil {
				t.notes = append(t.notes, fmt.Sprintf("the runners of %s: %v", owner, err))
			}
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(t.hub.all)) {
		if !t.hub.all[owner] {
			continue
		}
		of := registrations{Owner: owner, Runners: []runner{}}
		for _, r := range t.hub.heard[owner] {
			of.Runners = append(of.Runners, runner(r))
		}
		t.part.Registrations = append(t.part.Registrations, of)
	}
}

// askCloud asks about every machine whose end is not confirmed.
func (t *taker) askCloud(ctx context.Context) error {
	var ids []string
	for _, r := range append(slices.Clone(t.live), t.ended...) {
		if r.State != lifecycle.StateTerminated || !r.DueAt.IsZero() {
			ids = append(ids, r.InstanceID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	machines, err := t.Compute.Describe(ctx, ids)
	if err != nil {
		return err
	}
	for _, m := range machines {
		t.part.Machines = append(t.part.Machines, machine(m))
	}
	return nil
}
