package rules

import (
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// verdict is what the release of an assignment said of its caches.
type verdict struct {
	run   world.Run
	names []string
	// still are those of names that no operator has dropped since.
	still []string
}

// cachesWritten notes the verdict of a release, and holds a host that is pooled against what it has.
func (w *Watcher) cachesWritten(l *history, before, after lifecycle.Record) {
	if !w.Caching {
		return
	}
	if before.RunID != "" && (after.Releasing() || after.Stopped()) {
		repository, run := before.JobsRun()
		if run == "" { // the webhook that names the run of its job came with the release
			repository, run = after.JobsRun()
		}
		l.verdicts[after.Assignment] = verdict{world.Run{Repository: repository, ID: run}, after.KeepCaches, after.KeepCaches}
		if len(after.KeepCaches) == 0 {
			w.Mark(engine.MarkCacheThrown)
		}
	}
	w.checkToken(l, after)
	if said, ok := l.verdicts[after.Assignment]; ok && after.Releasing() {
		said.still = after.KeepCaches
		l.verdicts[after.Assignment] = said
	}
	if !before.Pooled() && after.Pooled() {
		w.checkListed(l, after)
	}
}

// checkToken checks who has a token for the mirror of a repository.
func (w *Watcher) checkToken(l *history, r lifecycle.Record) {
	if r.Mirror == nil {
		return
	}
	run := l.verdicts[r.Assignment].run
	switch {
	case !r.Releasing():
		w.Broken(RuleForeignToken, "%s is %s and has a token for %s", r.HostKey, r.Condition(), r.Mirror.URL)
	case !w.Trusted(run) || r.Mirror.URL != "https://github/"+run.Repository+".git":
		w.Broken(RuleForeignToken, "%s has a token for %s after run %s of %s", r.HostKey, r.Mirror.URL, run.ID, run.Repository)
	}
	w.Mark(engine.MarkToken)
}

// checkListed checks that the record of a host that is pooled lists what the host has.
func (w *Watcher) checkListed(l *history, r lifecycle.Record) {
	m := w.Machines[r.InstanceID]
	if m == nil || m.Host == nil || !m.Host.Alive || m.Host.Hostile || l.wasReplaced() {
		return
	}
	if has := m.Host.Caches(); r.Caches != has {
		w.Broken(RuleLostCache, "%s is pooled with the caches %q, and has %q", r.HostKey, r.Caches, has)
	}
}

// checkViews checks what a job sees: nothing that a run wrote which it may not share with, or that may not write.
func (w *Watcher) checkViews(h *world.Host, j *world.Job) {
	for _, v := range h.Views() {
		for _, writer := range v.Sees {
			switch {
			case !shares(v.Spec.ScopeOf(), writer.Repository, j.Repository):
				w.Broken(RuleForeignCache, "%s sees in the cache %s what run %s of %s wrote", j, v.Spec.Name, writer.ID, writer.Repository)
			case w.dropped(h.Machine.Pool, v, writer, w.of(h.ID).claimedAt) && !h.Hostile && !w.of(h.ID).wasReplaced():
				w.Broken(RuleForeignCache, "%s sees in the cache %s what run %s wrote, and it was dropped since", j, v.Spec.Name, writer.ID)
			case !w.Trusted(writer.Run) && writer.Run != (world.Run{Repository: j.Repository, ID: j.RunID}):
				w.Broken(RuleForeignCache, "%s sees in the cache %s what run %s wrote, which may not", j, v.Spec.Name, writer.ID)
			}
		}
	}
}

// dropped reports whether the cache was dropped between a write and the claim of the host by the run that sees it: a run that has a host then goes on with
// its view, which its host may be about to give it. A host that was new then may have been on no list.
func (w *Watcher) dropped(pool string, v *world.View, writer world.Writer, claimedAt time.Time) bool {
	at, ok := w.droppedAt[world.CacheDropped{Pool: pool, Key: v.Key}]
	return ok && claimedAt.After(at) && writer.At.Before(at.Add(-reuseLag))
}

func shares(scope cache.Scope, writer, reader string) bool {
	if scope == cache.ScopeOwner {
		return lifecycle.Owner(writer) == lifecycle.Owner(reader)
	}
	return strings.EqualFold(writer, reader)
}

// checkCleaned checks what became of the views of a host.
func (w *Watcher) checkCleaned(e world.CachesCleaned) {
	h, assignment, l := e.Host, e.Assignment, w.of(e.Host.ID)
	said, judged := l.verdicts[assignment]
	if e.Deleted && !judged && !h.Hostile && !l.wasReplaced() {
		w.Broken(RuleLostCache, "%s deletes the images of runs in assignment %d, and has left no run", h.ID, assignment)
	}
	for _, v := range e.Views {
		if len(v.Wrote) == 0 || h.Hostile || l.wasReplaced() {
			continue
		}
		of := slices.Equal(v.Wrote, []world.Run{said.run})
		may := judged && slices.Contains(said.names, v.Spec.Name)
		switch {
		case v.Kept && !judged && v.Spec.Holds == cache.HoldsDocker && (slices.Equal(v.Wrote, w.presentRun(h.ID)) || l.judgedSince(assignment, v.Wrote)):
			// it registers again for the run that has it, which is judged when it leaves, and may have left during the clean-up
		case v.Kept && (!of || !may):
			w.Broken(RuleStaleCommit, "%s keeps the cache %s of %v in assignment %d, whose release kept %v of run %s", h.ID, v.Spec.Name, v.Wrote, assignment, said.names, said.run.ID)
		case !v.Kept && of && slices.Contains(said.still, v.Spec.Name):
			w.Broken(RuleLostCache, "%s throws the cache %s of run %s away, which the release of assignment %d kept", h.ID, v.Spec.Name, said.run.ID, assignment)
		case v.Kept:
			w.Mark(engine.MarkCacheKept)
		}
	}
}

// judgedSince reports whether the run that wrote was judged as the host left a later assignment.
func (h *history) judgedSince(assignment int64, wrote []world.Run) bool {
	for later, v := range h.verdicts {
		if later > assignment && slices.Equal(wrote, []world.Run{v.run}) {
			return true
		}
	}
	return false
}

// presentRun is the run that has a host by its record; nil: none has.
func (w *Watcher) presentRun(hostKey string) []world.Run {
	r, err := w.Truth.Instance(engine.Background, hostKey)
	if err != nil || r.RunID == "" {
		return nil
	}
	return []world.Run{{Repository: r.Repository, ID: r.RunID}}
}

// checkRoots checks that a run gets no host on which an untrusted run was root: what that left there no clean-up finds.
func (w *Watcher) checkRoots(r lifecycle.Record) {
	m := w.Machines[r.InstanceID]
	if m == nil || m.Host == nil || w.of(r.HostKey).wasReplaced() {
		return
	}
	for _, root := range m.Host.Roots {
		if !w.Trusted(root) {
			w.Broken(RuleUntrustedRoot, "%s is given to run %s, and run %s was root on it, which may not write to its cache of docker", r.HostKey, r.RunID, root.ID)
		}
	}
}
