package rules

import (
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// pauseWritten notes since when a pool is paused.
func (w *Watcher) pauseWritten(before, after pause.Pause) {
	switch {
	case !after.On():
		delete(w.pausedSince, after.Pool)
	case !before.On():
		w.pausedSince[after.Pool] = w.Now
	}
}

// checkPaused checks that an operation which gives out or launches a host of a pool had found it not paused. One that read before the
// pause, and goes on since, cannot know.
func (w *Watcher) checkPaused(pool, doing string) {
	since, paused := w.pausedSince[pool]
	if !paused {
		return
	}
	if read := w.Current.LastLook(world.SeesPause(pool)); read.At.IsZero() || read.At.After(since) {
		w.Broken(RulePaused, "%s %s of pool %s, which is paused since %s; the pause was last read at %s",
			w.Current.Name, doing, pool, engine.SinceEpoch(since), engine.SinceEpoch(read.At))
	}
}
