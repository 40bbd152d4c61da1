package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// cachesBudget is how long the release of a host may wait for what GitHub says of its run. A job is over and its caller waits, so the views of caches
// are thrown away rather than that.
const cachesBudget = 3 * time.Second

// judges reports whether a decision asks whether the host's run may change its caches. A run that leaves before its host was ready has left nothing in
// views. But it may have been root where the pool has a cache of docker, and then the host ends after it, unless the run may write. So it is with a run that
// leaves before the machine of its host is known to have started: its job may have kept the agent from saying so. Without capacity the cloud says that it has not.
func (hs *Hosts) judges(r lifecycle.Record, d lifecycle.Decision) bool {
	switch d.Action {
	case lifecycle.ActionRelease:
		return true
	case lifecycle.ActionReturn:
		return hs.Policy(r.Pool).DockerCache != ""
	case lifecycle.ActionStop:
		return hs.Policy(r.Pool).DockerCache != "" && r.Starting() && d.Code != lifecycle.ReasonNoCapacity
	}
	return false
}

// keptCaches are the names of the caches that a run of the host may change, and why, for the event of the release. It fails
// closed: what GitHub does not say in time is thrown away. GitHub is asked only in a pool with caches, and about a branch only if that matters.
func (hs *Hosts) keptCaches(ctx context.Context, r lifecycle.Record, repository, runID string) (kept keptCaches, why string) {
	specs := hs.Pools[r.Pool].Caches
	if len(specs) == 0 {
		return kept, ""
	}
	if runID == "" || hs.Sources == nil {
		return kept, "its caches are thrown away: no run is known of its jobs"
	}
	ctx, cancel := context.WithTimeout(ctx, cachesBudget)
	defer cancel()
	verdict, err := hs.judgeCaches(ctx, specs, repository, runID)
	hs.GitHubHealth.sawVerdict(err)
	if err != nil {
		if errors.Is(err, lifecycle.ErrNotFound) {
			return kept, "its caches are thrown away: GitHub has no such run or branch"
		}
		hs.Log.Warn("caches of a run are thrown away", logkey.Instance, r.InstanceID, logkey.Repository, repository, logkey.Run, runID, logkey.Error, err)
		kept.unjudged = hs.Policy(r.Pool).DockerCache != "" && !errors.Is(err, lifecycle.ErrRefused)
		return kept, "its caches are thrown away: GitHub did not say whose run it is"
	}
	for _, s := range specs {
		if slices.Contains(r.ThrowCaches, s.Key(repository)) {
			verdict.throw(s.Name, "an operator dropped it")
		}
	}
	kept = keptCaches{names: verdict.kept, mirror: hs.mirror(ctx, r, specs, repository, verdict)}
	return kept, verdict.String()
}

// mirror is what the host needs to fetch the run's branch; nil if no cache that holds git is kept, or without a token. Then the cache stays as it is.
func (hs *Hosts) mirror(ctx context.Context, r lifecycle.Record, specs []cache.Spec, repository string, v cacheVerdict) *lifecycle.Mirror {
	if !slices.ContainsFunc(specs, func(s cache.Spec) bool { return s.Holds == cache.HoldsGit && slices.Contains(v.kept, s.Name) }) {
		return nil
	}
	m, err := hs.Sources.Mirror(ctx, repository, v.branch)
	if err != nil {
		hs.Log.Warn("no token for a host to fetch with", logkey.Instance, r.InstanceID, logkey.Repository, repository, logkey.Error, err)
		return nil
	}
	return &m
}

// keptCaches is what the record of a released host says of its caches.
type keptCaches struct {
	names  []string
	mirror *lifecycle.Mirror
	// unjudged: GitHub did not answer, and the host may yet outlive its run. A refusal is an answer: without the permission it would come each time.
	unjudged bool
}

// judgeAgain asks GitHub once more about a run that it did not judge at the release of its host, and decides again if it answers. The answer is for
// this decision alone: what the run has left is deleted already.
func (hs *Hosts) judgeAgain(ctx context.Context, j *op.Recorder, facts lifecycle.Facts, d lifecycle.Decision, now time.Time) (lifecycle.Decision, error) {
	if hs.GitHubHealth.verdictsUnknown(now) {
		return d, nil
	}
	repository, runID := facts.Record.RunBefore()
	kept, _ := hs.keptCaches(ctx, facts.Record, repository, runID)
	if kept.unjudged {
		return d, nil
	}
	facts.Record.KeepCaches, facts.Record.Unjudged = kept.names, false
	d, err := hs.decideUnderHold(ctx, facts, now)
	if err == nil {
		j.RecordDecision(facts.Record, d)
	}
	return d, err
}

// cacheVerdict is what is kept and thrown away, with the last reason for each.
type cacheVerdict struct {
	kept, thrown       []string
	keptWhy, thrownWhy string
	branch             string // of the run
}

// throw has a cache thrown away that was to be kept.
func (v *cacheVerdict) throw(name, why string) {
	if i := slices.Index(v.kept, name); i >= 0 {
		v.kept = slices.Delete(v.kept, i, i+1)
		v.thrown, v.thrownWhy = append(v.thrown, name), why
	}
}

// judgeCaches asks GitHub what it must know, and judges each cache.
func (hs *Hosts) judgeCaches(ctx context.Context, specs []cache.Spec, repository, runID string) (v cacheVerdict, err error) {
	run, err := hs.Sources.RunSource(ctx, repository, runID)
	if err != nil {
		return v, fmt.Errorf("read what run %s was started by: %w", runID, err)
	}
	v.branch = run.Branch
	var branch *cache.Branch
	for _, s := range specs {
		keeps, why := policy.KeepsCaches(run, s.From, nil)
		if keeps && branch == nil {
			is, err := hs.Sources.Branch(ctx, repository, run.Branch, run.SHA)
			if err != nil {
				return cacheVerdict{}, fmt.Errorf("read the branch of run %s: %w", runID, err)
			}
			branch = &is
		}
		if keeps {
			keeps, why = policy.KeepsCaches(run, s.From, branch)
		}
		if keeps {
			v.kept, v.keptWhy = append(v.kept, s.Name), why
		} else {
			v.thrown, v.thrownWhy = append(v.thrown, s.Name), why
		}
	}
	return v, nil
}

func (v cacheVerdict) String() string {
	var parts []string
	if len(v.kept) > 0 {
		parts = append(parts, "its caches are kept ("+strings.Join(v.kept, ", ")+"): "+v.keptWhy)
	}
	if len(v.thrown) > 0 {
		parts = append(parts, "its caches are thrown away ("+strings.Join(v.thrown, ", ")+"): "+v.thrownWhy)
	}
	return strings.Join(parts, "; ")
}
