package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// imagesName is the cache of docker, in lives with one.
const imagesName = "images"

// imaging reports whether the default pool is privileged and has a cache of docker: in five of eighty lives. In two of them
// hosts are hot, and in one they are stopped.
func (l *life) imaging() bool {
	seed := l.Config.Seed
	return (seed%40 == 29 || seed%40 == 35 || seed%80 == 10) && l.script == nil
}

// keepImages gives the default pool, and a job pool like it, a cache of docker, and has runs follow each other on its hosts. Every run is root there, and some of
// those that may not write to the cache take the host over.
func (l *life) keepImages() {
	if !l.imaging() {
		return
	}
	for _, name := range []string{"default", jobPoolName} {
		p, ok := l.Pools[name]
		if !ok || p.Policy.Reuse == lifecycle.ReuseNone {
			continue
		}
		spec := cache.Spec{Name: imagesName, Holds: cache.HoldsDocker, Size: 1 << 30}
		if p.Policy.Reuse == lifecycle.ReuseSameOwner {
			spec.Scope = cache.ScopeOwner
		}
		p.Caches, p.Policy.DockerCache, p.Policy.MaxUses, p.Policy.IdleTime = []cache.Spec{spec}, imagesName, 0, 8*time.Minute
		if l.stopping() {
			p.Policy.IdleTime = p.Policy.ClaimMargin + 10*time.Second // so that most runs have their hosts started
		}
		l.Pools[name] = p
	}
	l.Caching = true
	if l.stopping() { // many runs leave their hosts at about the time when these have started
		l.SetOdds(engine.FaultReleaseInterim, 3)
	}
	l.workload.repositories, l.workload.pools, l.workload.classes = world.Repositories[:1], []string{"default"}, []string{"small"}
	l.workload.spot, l.workload.jobLength = 0, 8*time.Second
	l.Observe(l.hostileRoots)
}

// hostileRoots has some of the jobs that may not write take their hosts over, and all where hosts are stopped, since few are started. Some hosts cannot say just
// then that they are ready, so that their jobs can keep them from saying so at all.
func (l *life) hostileRoots(event any) {
	switch e := event.(type) {
	case world.Listening:
		if h := e.Runner.Host; l.Storms && l.hasImages(h) && l.Rand.IntN(2) == 0 {
			h.CutOff = l.Now.Add(l.Between(3*time.Second, 12*time.Second))
		}
	case world.JobBegins:
		if l.hasImages(e.Host) && !l.Trusted(world.Run{Repository: e.Job.Repository, ID: e.Job.RunID}) && (l.stopping() || l.Rand.IntN(2) == 0) {
			l.After(l.Between(0, 3*time.Second), func() { l.takeOver(e.Host) })
		}
	}
}

// jobAhead queues a job of a run that takes the first host to listen, before that is known to be ready, in lives with a cache of docker.
func (r *caller) jobAhead() {
	if r.l.imaging() && (r.l.stopping() || r.l.Rand.IntN(2) == 0) {
		r.job(r.ID+" job ahead", r.ID)
	}
}

// hasImages reports whether the pool of a host has a cache of docker.
func (l *life) hasImages(h *world.Host) bool { return l.Pools[h.Machine.Pool].Policy.DockerCache != "" }

// takeOver is a job that is root and wants what it left on its host to stay: it stops the agent, and writes the reports by which controld would give the host
// to the next run.
func (l *life) takeOver(h *world.Host) {
	if !h.Alive || !h.Agent.Alive || !l.Chaos {
		return
	}
	h.Hostile, h.Agent.OnCrash = true, nil
	l.Kill(h.Agent, "a job that is root stops it")
	l.Mark(engine.MarkRootForges)
	l.forgeAsRoot(h, 40)
}

func (l *life) forgeAsRoot(h *world.Host, times int) {
	if times == 0 || !h.Alive || !l.Chaos {
		return
	}
	if r, err := l.Truth.Instance(engine.Background, h.ID); err == nil && !l.StoreAway() && !l.Now.Before(h.CutOff) {
		p := l.forgedAsRoot(r)
		l.PutReport(p)
		l.Tell(h.ID, "forges a report as root", world.ReportLine(p))
	}
	l.After(l.Between(2*time.Second, 10*time.Second), func() { l.forgeAsRoot(h, times-1) })
}

// forgedAsRoot is what a host says that its next run is to get: that the present run had no use for it, or that it is clean after it.
func (l *life) forgedAsRoot(r lifecycle.Record) lifecycle.Report {
	p := lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: l.Now, BootID: "forged", Assignment: r.Assignment}
	switch {
	case r.RunID == "":
		p.Signal, p.Caches = lifecycle.SignalRemoveRegOK, r.Caches
	case r.Starting(): // nothing was heard since then
		p.HeartbeatAt, p.Assignment = r.Stop.StartAt, r.Assignment-1
	case r.State == lifecycle.StateClaimed:
		p.Signal, p.Cause = lifecycle.SignalRegFailed, lifecycle.CauseGitHub
	default:
		p.Signal = lifecycle.SignalRegOK
	}
	return p
}
