package world

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// Caches of hosts, in lives that have them. What a cache holds is who wrote it.

// Cache is the committed state of a cache on a host: the runs that have written it, the last one last.
type Cache struct {
	Writers []Writer
	usedAt  time.Time
}

// Writer is a run whose view became a cache, and when.
type Writer struct {
	Run
	At time.Time
}

// View is what the jobs of an assignment see of a cache.
type View struct {
	Spec cache.Spec
	Key  string
	// Sees are the runs that wrote what was committed, and Wrote those whose jobs have run since it was attached.
	Sees  []Writer
	Wrote []Run
	// Kept: it became the cache.
	Kept       bool
	assignment int64
}

const (
	// cachesOnHost is how many caches a host has room for: those that were used least recently leave.
	cachesOnHost = 3
	// writersKept is how many writers of a cache are remembered.
	writersKept = 20
	cacheBytes  = 100 << 20
)

// attach gives the jobs of an assignment views of its caches, unless they have them. Those that an operator dropped are deleted first.
func (h *Host) attach(a agent.Assignment) {
	for _, v := range h.views {
		if v.assignment == a.Number {
			return
		}
	}
	for _, key := range a.DropCaches {
		delete(h.caches, key)
	}
	for _, spec := range h.World.Pools[h.Machine.Pool].Caches {
		key := spec.Key(a.CachesOf)
		if key == "" {
			continue
		}
		c := h.caches[key]
		if len(c.Writers) > 0 {
			h.World.Mark(engine.MarkCacheSeen)
		}
		h.caches[key] = Cache{c.Writers, h.World.Now}
		h.views[spec.Name] = &View{Spec: spec, Key: key, Sees: slices.Clone(c.Writers), assignment: a.Number}
	}
}

// Views are what a job sees, in order of their names.
func (h *Host) Views() (views []*View) {
	for _, name := range slices.Sorted(maps.Keys(h.views)) {
		views = append(views, h.views[name])
	}
	return views
}

// writeViews is a job that writes all that it may.
func (h *Host) writeViews(j *Job) {
	for _, v := range h.Views() {
		if run := (Run{j.Repository, j.RunID}); !slices.Contains(v.Wrote, run) {
			v.Wrote = append(v.Wrote, run)
		}
	}
}

// commit ends all views: those that the clean-up keeps, and that jobs wrote, become the caches. Then there is room again.
func (h *Host) commit(c agent.CleanUp) {
	w, kept := h.World, strings.Split(c.KeepCaches, ",")
	deleted := h.deleteImages(kept)
	for _, v := range h.Views() {
		if len(v.Wrote) == 0 {
			continue
		}
		if v.Kept = slices.Contains(kept, v.Spec.Name); v.Kept {
			writers := slices.Clone(v.Sees)
			for _, run := range v.Wrote {
				writers = append(writers, Writer{run, w.Now})
			}
			h.caches[v.Key] = Cache{writers[max(0, len(writers)-writersKept):], w.Now}
			w.Tell(h.ID, "cache kept", fmt.Sprintf("%s of %s", v.Spec.Name, v.Wrote[0].ID))
		}
	}
	w.emit(CachesCleaned{h, c.Assignment, h.Views(), deleted})
	h.views = map[string]*View{}
	keys := slices.SortedFunc(maps.Keys(h.caches), func(a, b string) int {
		return cmp.Or(h.caches[b].usedAt.Compare(h.caches[a].usedAt), strings.Compare(a, b))
	})
	for i, key := range keys {
		if i >= cachesOnHost || len(h.caches[key].Writers) == 0 {
			delete(h.caches, key)
		}
	}
	h.Observed.Caches = h.Caches()
}

// Caches are those of the host, as its agent lists them.
func (h *Host) Caches() cache.List {
	var held []cache.Held
	for key, c := range h.caches {
		held = append(held, cache.Held{Key: key, Bytes: cacheBytes, CommittedAt: c.usedAt})
	}
	return cache.ListOf(held...)
}

// Dropped notes that an operator dropped a cache.
func (w *World) Dropped(pool, key string) {
	w.Mark(engine.MarkCacheDropped)
	w.emit(CacheDropped{pool, key})
}

// origin is what a run was started by.
type origin struct {
	source cache.Source
	branch cache.Branch
}

// originOf follows from the run alone, so a life without caches draws nothing for it.
func (w *World) originOf(run Run) origin {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run.Repository + " " + run.ID)) // it never fails
	o := origin{
		cache.Source{Event: "push", Branch: "main", SHA: shaOf(run), RepositoryID: repositoryID, HeadRepositoryID: repositoryID},
		cache.Branch{Protected: true, Has: true},
	}
	kind := h.Sum32() % 10
	if j := w.GitHub.ofRun(run.ID); j != nil && j.Fork {
		kind = 0
	}
	switch kind {
	case 0: // of a fork, from its branch main
		o.source.Event, o.source.HeadRepositoryID = "pull_request", forkID
	case 1: // of a tag that is called main
		o.branch.Has = false
	case 2: // of a branch that all with write access can push to
		o.source.Branch, o.branch.Protected = "feature", false
	case 3: // of what another run left
		o.source.Event = "workflow_run"
	}
	return o
}

func shaOf(run Run) string { return "sha of " + run.Repository + " " + run.ID }

// Trusted reports whether a run may write to caches: it is a push, and its commit is on the protected branch.
func (w *World) Trusted(run Run) bool {
	o := w.originOf(run)
	return o.source.Event == "push" && o.source.HeadRepositoryID == repositoryID && o.branch.Has && o.branch.Protected
}

// SourcesPort is what GitHub says of runs and branches.
type SourcesPort struct{ w *World }

// RunSource implements ports.GitHubSources.
func (p SourcesPort) RunSource(_ context.Context, repository, runID string) (source cache.Source, err error) {
	err = GitHubPort(p).call("read run", func() error {
		source = p.w.originOf(Run{repository, runID}).source
		return nil
	})
	return source, err
}

// Branch implements ports.GitHubSources.
func (p SourcesPort) Branch(_ context.Context, repository, _, sha string) (branch cache.Branch, err error) {
	err = GitHubPort(p).call("read branch", func() error {
		id, ok := strings.CutPrefix(sha, shaOf(Run{Repository: repository}))
		if !ok {
			return fmt.Errorf("read branch: %w", lifecycle.ErrNotFound)
		}
		branch = p.w.originOf(Run{repository, id}).branch
		return nil
	})
	return branch, err
}

// Mirror implements ports.GitHubSources.
func (p SourcesPort) Mirror(_ context.Context, repository, branch string) (m lifecycle.Mirror, err error) {
	err = GitHubPort(p).call("create token", func() error {
		m = lifecycle.Mirror{URL: "https://github/" + repository + ".git", Branch: branch, Token: "token", ExpiresAt: p.w.Now.Add(time.Hour)}
		return nil
	})
	return m, err
}
