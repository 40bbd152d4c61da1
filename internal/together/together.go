// Package together lets a store write what several goroutines of one operation write at the same time in one transaction. The operation
// makes a group of them. A store that gains by it holds the writes of the members until all of them wait for one.
package together

import (
	"context"
	"sync"
	"time"
)

// Patience is how long a write waits for those of the other members: one may be waiting for something else.
const Patience = 5 * time.Millisecond

// Group is some goroutines that do the same at the same time. It is safe for concurrent use.
type Group struct {
	mu sync.Mutex
	// members are those that have not left. Each has at most one of held.
	members int
	held    []any
	give    func([]any)
	timer   *time.Timer
}

type key struct{}

// With returns a context for the members of a new group of n. Each must call Leave once.
func With(ctx context.Context, n int) (context.Context, *Group) {
	g := &Group{members: n}
	return context.WithValue(ctx, key{}, g), g
}

// Of is the group of the context; nil: it has none.
func Of(ctx context.Context) *Group {
	g, _ := ctx.Value(key{}).(*Group)
	return g
}

// Hold keeps what a member gives until each member has given something or has left, or for Patience. Then give gets all of it, in the order
// in which it came. It must not block. All members give to the same.
func (g *Group) Hold(v any, give func([]any)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held, g.give = append(g.held, v), give
	if len(g.held) == 1 {
		g.timer = time.AfterFunc(Patience, g.late)
	}
	g.giveIfAll()
}

// Leave is called by a member that will hold nothing more.
func (g *Group) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members--
	g.giveIfAll()
}

func (g *Group) late() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.giveAll()
}

func (g *Group) giveIfAll() {
	if len(g.held) >= g.members {
		g.giveAll()
	}
}

func (g *Group) giveAll() {
	if len(g.held) == 0 {
		return
	}
	g.timer.Stop()
	all := g.held
	g.held = nil
	g.give(all)
}
