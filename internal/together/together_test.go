package together_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/together"
)

// gathered collects what a group gives.
type gathered struct {
	mu   sync.Mutex
	sets [][]any
}

func (g *gathered) take(all []any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sets = append(g.sets, all)
}

func (g *gathered) is(t *testing.T, want ...[]any) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.EqualFunc(g.sets, want, slices.Equal) {
		t.Errorf("it gave %v, want %v", g.sets, want)
	}
}

func TestAllMembersGive(t *testing.T) {
	ctx, group := together.With(t.Context(), 2)
	var got gathered
	together.Of(ctx).Hold("a", got.take)
	got.is(t)
	group.Hold("b", got.take)
	got.is(t, []any{"a", "b"})
	group.Hold("c", got.take)
	group.Hold("d", got.take)
	got.is(t, []any{"a", "b"}, []any{"c", "d"})
}

func TestAMemberLeaves(t *testing.T) {
	_, group := together.With(t.Context(), 3)
	var got gathered
	group.Hold("a", got.take)
	group.Leave()
	got.is(t)
	group.Leave()
	got.is(t, []any{"a"})
	group.Hold("b", got.take)
	got.is(t, []any{"a"}, []any{"b"})
	group.Leave()
	got.is(t, []any{"a"}, []any{"b"})
}

// TestAMemberIsLate: what is held waits no longer than Patience for a member that does something else.
func TestAMemberIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, group := together.With(t.Context(), 2)
		var got gathered
		group.Hold("a", got.take)
		time.Sleep(together.Patience - 1)
		synctest.Wait()
		got.is(t)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		got.is(t, []any{"a"})
		time.Sleep(time.Hour)
		group.Hold("b", got.take)
		group.Leave()
		time.Sleep(time.Hour)
		synctest.Wait()
		got.is(t, []any{"a"}, []any{"b"})
	})
}

func TestNoGroup(t *testing.T) {
	if together.Of(context.Background()) != nil {
		t.Error("a context without a group has one")
	}
}
