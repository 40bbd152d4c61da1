package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// Of the hosts that wait for hours in the measurement so many are there, and so many are awake.
const (
	waitingHosts = 50
	awakeHosts   = 10
)

// readers lets the hosts answer at their own reads, as often as agents do by default: awake hosts often, and hosts that rest seldom.
func (w *world) readers(ctx context.Context, seed uint64) {
	r, every := rand.New(rand.NewPCG(seed, 1)), agent.DefaultIntervals()
	interval := func(host lifecycle.Record) time.Duration {
		if host.Resting() {
			return every.ReadStandby
		}
		return every.ReadIdle
	}
	next := map[string]time.Time{}
	for ctx.Err() == nil {
		now, wake := time.Now(), time.Now().Add(every.ReadIdle)
		w.set(func() {
			for _, host := range w.allRecords() {
				at, known := next[host.HostKey]
				if !known { // it has read before at some moment
					at = now.Add(time.Duration(r.Float64() * float64(interval(host))))
				}
				w.deaf[host.HostKey] = at.After(now)
				if !at.After(now) {
					at = now.Add(time.Duration(float64(interval(host)) * (0.9 + 0.2*r.Float64())))
				}
				next[host.HostKey] = at
				if at.Before(wake) {
					wake = at
				}
			}
		})
		w.answer(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(wake.Sub(now)):
		}
	}
}

// measureRest takes so many of the hosts that wait, in one request, again and again. It returns how long that takes until all are ready.
func measureRest(t *testing.T, take, times, awake int) (c claims) {
	t.Helper()
	var took []time.Duration
	for n := range times {
		synctest.Test(t, func(t *testing.T) {
			w, _ := rested(t, waitingHosts, awake, func(o *fleet.Options) {
				o.Store = mortalStore{o.Store.(*store.Store), &fate{takes: 5 * time.Millisecond}}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			go w.readers(ctx, uint64(n))
			time.Sleep(3*time.Second + time.Duration(n*37%100)*20*time.Millisecond)
			began := time.Now()
			w.mustProvision(ctx, demand("1", "a", take))
			took = append(took, time.Since(began))
			if n := w.machines(); n != waitingHosts {
				t.Errorf("%d machines live, want the %d that waited", n, waitingHosts)
			}
		})
	}
	slices.Sort(took)
	return claims{took[len(took)/2], took[len(took)*99/100]}
}

// restRows is the table of claims of hosts that may rest.
func restRows(t *testing.T) string {
	var rows strings.Builder
	for _, m := range []struct{ take, times int }{{1, 100}, {awakeHosts, 50}, {awakeHosts + 1, 50}, {waitingHosts, 20}} {
		all, some := measureRest(t, m.take, m.times, waitingHosts), measureRest(t, m.take, m.times, awakeHosts)
		fmt.Fprintf(&rows, "| %d | %.2f s | %.2f s | %.2f s | %.2f s |\n", m.take, all.half.Seconds(), all.most.Seconds(), some.half.Seconds(), some.most.Seconds())
	}
	return rows.String()
}
