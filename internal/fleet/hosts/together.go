package hosts

import (
	"context"
	"sync"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/together"
)

// AtOnce is on how many hosts an operation works at once, unless it is configured. It is what the connections to AWS carry.
const AtOnce = 10

// Some is how many of n hosts the next step works on.
func (hs *Hosts) Some(n int) int { return min(n, hs.AtOnce) }

// Together calls do with the numbers below n, all at once, for what a step does to each of several hosts by itself. It may come in any order, and a
// crash may come between any two: it is as if each were a step. So what is true of the steps of one host after the other is true of this.
// Each call records with a recorder of its own. What they record is j's in the order of the numbers, and the messages of hosts that they pooled are sent
// together.
func (hs *Hosts) Together(ctx context.Context, j *op.Recorder, n int, do func(ctx context.Context, i int, j *op.Recorder)) {
	if n == 1 {
		do(ctx, 0, j)
		return
	}
	parts := make([]op.Recorder, n)
	for i := range parts {
		parts[i] = j.Part()
	}
	ctx, group := together.With(ctx, n)
	hs.eachAtOnce(n, func(i int) {
		defer group.Leave()
		do(ctx, i, &parts[i])
	})
	for i := range parts {
		j.Join(&parts[i])
	}
	if !j.HoldsOffers {
		hs.SendOffers(ctx, j, 1)
	}
}

// eachAtOnce calls do with the numbers below n, all at once: what calls GitHub waits for its turn there.
func (hs *Hosts) eachAtOnce(n int, do func(i int)) {
	if hs.AtOnce == 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}
