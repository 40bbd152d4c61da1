package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/cachestore"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// attachHere is agentd attach. The file in the place of a configuration has the options of the host.
func attachHere(args []string) int {
	data, err := os.ReadFile(args[1])
	var o host.Options
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	var h *host.Host
	if err == nil {
		h, err = host.New(o)
	}
	if err == nil {
		var drop []string
		if len(args) > 7 {
			drop = strings.Split(args[7], ",")
		}
		err = h.AttachNow(context.Background(), 7, args[5], drop)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return 0
}

var goCache = cache.Spec{Name: "go", Paths: []string{"~/go/pkg/mod"}, Size: 64 << 20}

// newCachingBed is a host that keeps a cache.
func newCachingBed(t *testing.T, specs ...cache.Spec) *bed {
	t.Helper()
	return newBed(t, func(o *host.Options) {
		o.Caches, o.Config = specs, filepath.Join(o.Dir, "../options.json")
		data, err := json.Marshal(host.Options{Dir: o.Dir, Program: o.Program, Distribution: o.Distribution, Caches: o.Caches, Config: o.Config})
		if err == nil {
			err = os.WriteFile(o.Config, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// runWith begins a run whose jobs see the caches of a repository, without those that are dropped.
func (b *bed) runWith(repository string, dropped ...string) {
	b.Helper()
	b.register()
	a := b.assignment()
	a.CachesOf, a.DropCaches = repository, dropped
	b.check(b.Listen(context.Background(), a))
	b.until("the listener listens", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerListening })
}

// endRun ends it, and keeps its caches or not.
func (b *bed) endRun(keep bool) agent.Observed {
	b.Helper()
	c := agent.CleanUp{Assignment: 8}
	if keep {
		c.KeepCaches = "go,npm,tools"
	}
	return b.endRunBy(c)
}

// endRunBy ends it by a clean-up.
func (b *bed) endRunBy(c agent.CleanUp) agent.Observed {
	b.Helper()
	b.check(b.Stop(context.Background()))
	b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	b.check(os.Remove(b.path("runner/.runner")))
	b.check(b.Clean(context.Background(), c))
	s := b.until("the clean-up ends", func(s agent.Observed) bool { return s.Cleaned.Phase != agent.PhaseRunning })
	if s.Cleaned.Phase != agent.PhaseOK {
		b.Fatalf("the clean-up failed: %s", s.Cleaned.Detail)
	}
	return s
}

const inCache = "home/go/pkg/mod/module"

func TestCachesOutliveARun(t *testing.T) {
	t.Parallel()
	b := newCachingBed(t, goCache)
	b.runWith("acme/app")
	b.check(os.WriteFile(b.path(inCache), []byte("trusted"), 0o644))
	b.check(os.WriteFile(b.path("home/elsewhere"), nil, 0o644))
	s := b.endRun(true)
	held := s.Caches.Held()
	if len(held) != 1 || held[0].Key != goCache.Key("acme/app") || held[0].Bytes == 0 || s.CacheBytes != held[0].Bytes {
		t.Fatalf("the host has the caches %v of %d bytes", held, s.CacheBytes)
	}
	if entries, err := os.ReadDir(b.path("home")); err != nil || len(entries) > 0 {
		t.Fatalf("after the run the home has %v, %v", entries, err)
	}

	// The next run sees it, and what it changes is thrown away.
	b.runWith("acme/app")
	if content := b.read(inCache); content != "trusted" {
		t.Fatalf("the next run sees %q", content)
	}
	b.check(os.WriteFile(b.path(inCache), []byte("poison"), 0o644))
	b.endRun(false)
	b.runWith("acme/app")
	if content := b.read(inCache); content != "trusted" {
		t.Fatalf("after a run whose caches are thrown away the next one sees %q", content)
	}
	b.endRun(false)

	// An operator dropped it.
	b.runWith("acme/app", goCache.Key("acme/other"), goCache.Key("acme/app"))
	if _, err := os.Lstat(b.path(inCache)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the run sees a cache that was dropped: %v", err)
	}
	if s := b.endRun(false); s.Caches != "" {
		t.Fatalf("the host has %q after its cache was dropped", s.Caches)
	}

	// Another repository has caches of its own.
	b.runWith("acme/other")
	if _, err := os.Lstat(b.path(inCache)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("another repository sees the cache: %v", err)
	}
	b.endRun(true)
}

// TestCachesLeaveBeforeTheHost: while its disk has too little room a host deletes its caches, and only then is it given up.
func TestCachesLeaveBeforeTheHost(t *testing.T) {
	t.Parallel()
	b := newCachingBed(t, goCache)
	b.runWith("acme/app")
	b.check(os.WriteFile(b.path(inCache), []byte("trusted"), 0o644))
	b.endRun(true)
	b.options.MinimumFree = 1 << 62
	b.reopen()
	s := b.clean(9)
	if s.Cleaned.Phase != agent.PhaseFailed || !strings.Contains(s.Cleaned.Detail, "MiB are free") {
		t.Fatalf("cleaned: %+v", s.Cleaned)
	}
	if _, err := os.Lstat(b.path("caches/" + goCache.Key("acme/app"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the host is given up, and its cache is there: %v", err)
	}
}

// TestCachesBeyondTheMost: the report of a clean host has all of its caches, also when the last run made one too many.
func TestCachesBeyondTheMost(t *testing.T) {
	t.Parallel()
	b := newCachingBed(t, goCache)
	var s agent.Observed
	for i := range cachestore.MaxCaches + 1 {
		b.runWith(fmt.Sprint("acme/app", i))
		b.check(os.WriteFile(b.path(inCache), []byte("1"), 0o644))
		s = b.endRun(true)
	}
	there, err := filepath.Glob(b.path("caches/????????????????/current"))
	if listed := s.Caches.Held(); err != nil || len(there) != cachestore.MaxCaches || len(listed) != len(there) {
		t.Fatalf("the host has %d caches and lists %d: %v", len(there), len(listed), err)
	}
}

func TestCachesOfAnOwner(t *testing.T) {
	t.Parallel()
	shared := cache.Spec{Name: "npm", Paths: []string{"~/.npm"}, Size: 64 << 20, Scope: cache.ScopeOwner}
	b := newCachingBed(t, goCache, shared)
	b.runWith("acme") // a job-scoped host, whose job GitHub chooses
	if _, err := os.Lstat(b.path("home/go")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the cache of a repository is attached for an owner: %v", err)
	}
	b.check(os.WriteFile(b.path("home/.npm/package"), []byte("1"), 0o644))
	b.endRun(true)
	b.runWith("acme/app")
	if content := b.read("home/.npm/package"); content != "1" {
		t.Fatalf("a repository of the owner sees %q", content)
	}
	b.endRun(false)
}

// TestToolCache: its place is in the environment of the runner, and a later run finds the versions that a trusted one has added.
func TestToolCache(t *testing.T) {
	t.Parallel()
	b := newCachingBed(t, cache.Spec{Name: "tools", Holds: cache.HoldsTools, Size: 64 << 20})
	dir := b.path("home/hostedtoolcache")
	b.runWith("acme/app")
	for _, want := range []string{"RUNNER_TOOL_CACHE=" + dir, "AGENT_TOOLSDIRECTORY=" + dir} {
		if env := b.read("env-listener"); !strings.Contains(env, want+"\n") {
			t.Errorf("%s is not in the environment of the listener: %s", want, env)
		}
	}
	b.check(os.MkdirAll(filepath.Join(dir, "go/1.22.1/x64"), 0o755))
	b.check(os.WriteFile(filepath.Join(dir, "go/1.22.1/x64.complete"), nil, 0o644))
	b.check(os.WriteFile(filepath.Join(dir, "stray"), nil, 0o644))
	if s := b.endRun(true); len(s.Caches.Held()) != 1 {
		t.Fatalf("the host has the caches %q", s.Caches)
	}
	b.runWith("acme/app")
	entries, err := os.ReadDir(dir)
	_, markerErr := os.Stat(filepath.Join(dir, "go/1.22.1/x64.complete"))
	if err != nil || markerErr != nil || len(entries) != 1 {
		t.Fatalf("the next run sees %v, %v, %v", entries, err, markerErr)
	}
	b.endRun(false)

	// A host whose job GitHub chooses among the repositories of the owner has no cache of a repository.
	b.runWith("acme")
	if env := b.read("env-listener"); strings.Contains(env, "TOOL") {
		t.Errorf("without a tool cache the environment of the listener is %s", env)
	}
	b.endRun(false)
}

func TestCachesLeaveWithTheirConfiguration(t *testing.T) {
	t.Parallel()
	b := newCachingBed(t, goCache)
	b.runWith("acme/app")
	b.check(os.WriteFile(b.path(inCache), nil, 0o644))
	b.endRun(true)
	b.options.Caches = nil
	b.reopen()
	b.clean(8)
	if left, err := os.ReadDir(b.path("caches")); err != nil || len(left) > 0 {
		t.Fatalf("of the store is left: %v, %v", left, err)
	}
}

func TestCachesThatCannotBeAttachedStopNoJob(t *testing.T) {
	t.Parallel()
	b := newCachingBed(t, goCache)
	b.check(os.WriteFile(b.options.Config, []byte("{"), 0o600))
	b.runWith("acme/app")
	if log := b.read("logs/runner.log"); !strings.Contains(log, "unexpected end of JSON") {
		t.Fatalf("the log does not say why the caches are missing: %s", log)
	}
	b.endRun(true)
}
