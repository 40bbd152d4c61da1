//go:build soak

package soak_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// nemesis takes one fault after the other, and undoes each before the next.
type nemesis struct {
	*stage
	sweeps *sweeps
	list   func(n *nemesis) []fault
	random *rand.Rand
	count  map[string]int
	skews  []time.Duration
	errs   []error
	clocks bool // they can be set
}

const (
	// faultEvery is how often there is one, and it lasts for a part of that: longer than a lease as a rule, so that another replica takes over.
	faultEvery = 15 * time.Second
	atLeast    = 5 * time.Second
	atMost     = 11 * time.Second
)

// fault is what happens to one replica, or to what all of them share.
type fault struct {
	name string
	do   func(r *replica) error
	undo func(r *replica) error
}

// faults are all, or those that SOAK_FAULTS names, such as "kill -9, full disk".
func (n *nemesis) faults() []fault {
	list := []fault{
		{"kill -9", func(r *replica) error { return r.running().kill() }, (*replica).start},
		{"stop and continue", signal(syscall.SIGSTOP), signal(syscall.SIGCONT)},
		{"network cut", func(r *replica) error { return r.network.cut() }, func(r *replica) error { return r.network.heal() }},
		{"full disk", func(*replica) error { return n.disk.fill() }, func(*replica) error { return n.disk.room() }},
	}
	if n.clocks {
		list = append(list, fault{"wrong clock", func(r *replica) error { return n.setClock(r, n.skew()) }, func(r *replica) error { return n.setClock(r, 0) }})
	}
	only := os.Getenv("SOAK_FAULTS")
	return slices.DeleteFunc(list, func(f fault) bool { return only != "" && !strings.Contains(only, f.name) })
}

func signal(s syscall.Signal) func(r *replica) error {
	return func(r *replica) error { return syscall.Kill(r.running().pid, s) }
}

// wrongClocks are by how much a clock is wrong: within what is tolerated, and far beyond.
var wrongClocks = []time.Duration{
	20 * time.Second, -20 * time.Second, 10 * time.Minute, -10 * time.Minute, 5 * time.Hour, -5 * time.Hour,
}

// skew is the next of them. One clock that all replicas and the store share is only ever set by a little: nothing could tell that it is wrong.
func (n *nemesis) skew() time.Duration {
	list := wrongClocks
	if n.oneClock {
		list = list[:2]
	}
	skew := list[n.count["wrong clock"]%len(list)]
	n.skews = append(n.skews, skew)
	return skew
}

func (n *nemesis) setClock(r *replica, ahead time.Duration) error {
	if !n.oneClock {
		return r.running().clock.set(ahead)
	}
	for _, r := range n.replicas {
		if err := r.running().clock.set(ahead); err != nil {
			return err
		}
	}
	return nil
}

// rage goes on until ctx ends. A fault that has begun is undone.
func (n *nemesis) rage(ctx context.Context) {
	tick := time.NewTicker(faultEvery)
	defer tick.Stop()
	var bag []fault
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if len(bag) == 0 {
			bag = n.list(n)
			n.random.Shuffle(len(bag), func(i, j int) { bag[i], bag[j] = bag[j], bag[i] })
		}
		n.take(bag[0])
		bag = bag[1:]
	}
}

// take has one replica suffer a fault: every other time the one that sweeps.
func (n *nemesis) take(f fault) {
	victim := n.replicas[n.random.IntN(len(n.replicas))]
	if total := n.total(); total%2 == 0 {
		victim = n.replicas[n.sweeps.by()]
	}
	lasts := atLeast + time.Duration(n.random.Int64N(int64(atMost-atLeast)))
	n.sweeps.under(fmt.Sprintf("%s of replica %d", f.name, victim.number))
	n.Logf("%s: %s of replica %d for %s", time.Now().Format(time.TimeOnly), f.name, victim.number, lasts.Round(time.Millisecond))
	if err := f.do(victim); err != nil {
		n.errs = append(n.errs, fmt.Errorf("%s: %w", f.name, err))
	}
	n.count[f.name]++
	time.Sleep(lasts)
	if err := f.undo(victim); err != nil {
		n.errs = append(n.errs, fmt.Errorf("the end of %s: %w", f.name, err))
	}
}

func (n *nemesis) total() (all int) {
	for _, k := range n.count {
		all += k
	}
	return all
}

func (n *nemesis) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(n.count)) {
		all = append(all, fmt.Sprintf("%d %s", n.count[name], name))
	}
	return strings.Join(all, ", ")
}
