package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// sources is what GitHub says of runs and branches.
type sources struct {
	run     cache.Source
	branch  cache.Branch
	runErr  error
	brError error
	mirror  error

	mu    sync.Mutex
	hangs bool // it answers nothing
	asked []string
}

// answer has it answer from now on.
func (s *sources) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs = false
}

func (s *sources) ask(ctx context.Context, what string) error {
	s.mu.Lock()
	s.asked = append(s.asked, what)
	hangs := s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (s *sources) RunSource(ctx context.Context, repository, runID string) (cache.Source, error) {
	if err := s.ask(ctx, "run "+repository+"/"+runID); err != nil {
		return cache.Source{}, err
	}
	return s.run, s.runErr
}

func (s *sources) Branch(ctx context.Context, repository, name, sha string) (cache.Branch, error) {
	if err := s.ask(ctx, "branch "+repository+" "+name+" "+sha); err != nil {
		return cache.Branch{}, err
	}
	return s.branch, s.brError
}

func (s *sources) Mirror(ctx context.Context, repository, branch string) (lifecycle.Mirror, error) {
	if err := s.ask(ctx, "mirror "+repository+" "+branch); err != nil {
		return lifecycle.Mirror{}, err
	}
	return lifecycle.Mirror{URL: "https://github/" + repository + ".git", Branch: branch, Token: "ghs_1"}, s.mirror
}

// TestReleaseJudgesCaches: the write of the release says which views become caches, by GitHub's word alone, and its event says why.
func TestReleaseJudgesCaches(t *testing.T) {
	push := cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}
	fork := push
	fork.Event, fork.HeadRepositoryID = "pull_request", 8
	has, protected := cache.Branch{Has: true}, cache.Branch{Has: true, Protected: true}
	both, release := []string{"run acme/app/1", "branch acme/app main a1"}, []string{"run acme/app/1"}
	for name, tt := range map[string]struct {
		sources *sources
		want    []string
		why     string
		asked   []string
	}{
		"a push to a protected branch":    {&sources{run: push, branch: protected}, []string{"go", "npm"}, `caches are kept (go, npm)`, both},
		"a push to a branch of from":      {&sources{run: push, branch: has}, []string{"npm"}, `caches are kept (npm): the branch "main" matches`, both},
		"a pull request of a fork":        {&sources{run: fork, branch: protected}, nil, `thrown away (go, npm): a run by the event "pull_request"`, release},
		"a run that GitHub does not know": {&sources{runErr: lifecycle.ErrNotFound}, nil, "GitHub has no such run", release},
		"a branch that is gone":           {&sources{run: push, brError: lifecycle.ErrNotFound}, nil, "GitHub has no such run or branch", both},
		"GitHub is away":                  {&sources{runErr: errors.New("away")}, nil, "GitHub did not say", release},
		"GitHub is away after the run":    {&sources{run: push, brError: errors.New("away")}, nil, "GitHub did not say", both},
		"GitHub does not answer":          {&sources{hangs: true}, nil, "GitHub did not say", release},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, withCaches(tt.sources), func(ctx context.Context, t *testing.T, w *world) {
				go sweepOnceItWaits(ctx, w.fleet)
				w.mustProvision(ctx, demand("1", "a", 1))
				w.set(func() { w.mute = true }) // the host stays as the release leaves it
				began := time.Now()
				freed := w.release(ctx, "1", false).Instances()
				if took := time.Since(began); len(freed) != 1 || took > 4*time.Second {
					t.Fatalf("freed %d hosts in %s", len(freed), took)
				}
				r := w.record(freed[0].HostKey)
				if !r.Releasing() || !slices.Equal(r.KeepCaches, tt.want) || !strings.Contains(r.Reason, tt.why) {
					t.Errorf("the host is %s, keeps %q: %s", r.Condition(), r.KeepCaches, r.Reason)
				}
				if !slices.Equal(tt.sources.asked, tt.asked) {
					t.Errorf("asked %q, want %q", tt.sources.asked, tt.asked)
				}
				w.set(func() { w.mute = false })
				time.Sleep(time.Minute)
				if r := w.record(freed[0].HostKey); !r.Pooled() || r.KeepCaches != nil {
					t.Errorf("a minute later the host is %s and keeps %q: %s", r.Condition(), r.KeepCaches, r.Reason)
				}
			})
		})
	}
}

// withCaches gives the default pool two caches: go from protected branches, npm from main.
func withCaches(s *sources) func(*fleet.Options) {
	return func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Caches = []cache.Spec{{Name: "go", Paths: []string{"~/go"}, Size: 1 << 30}, {Name: "npm", Paths: []string{"~/.npm"}, Size: 1 << 30, From: []string{"main"}}}
		o.Pools["default"], o.Sources = p, s
	}
}

// TestReleaseWithoutCaches: a pool without caches asks GitHub nothing more.
func TestReleaseWithoutCaches(t *testing.T) {
	s := &sources{}
	inBubbleOf(t, func(o *fleet.Options) { o.Sources = s }, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 1))
		freed := w.release(ctx, "1", true).Instances()
		if len(s.asked) != 0 || len(freed) != 1 || strings.Contains(freed[0].Reason, "cache") {
			t.Errorf("asked %q; the host is %v", s.asked, freed)
		}
	})
}

// TestReleaseGivesATokenForGit: only the host of a run that may write gets a token, until it is clean. It is no part of the decision whether the
// cache is kept.
func TestReleaseGivesATokenForGit(t *testing.T) {
	push := cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}
	fork := push
	fork.Event, fork.HeadRepositoryID = "pull_request", 8
	protected := cache.Branch{Has: true, Protected: true}
	for name, tt := range map[string]struct {
		sources *sources
		kept    []string
		branch  string
		asked   int
	}{
		"a push to a protected branch": {&sources{run: push, branch: protected}, []string{"go", "git"}, "main", 3},
		"a push to another branch":     {&sources{run: push, branch: cache.Branch{Has: true}}, nil, "", 2},
		"a pull request of a fork":     {&sources{run: fork, branch: protected}, nil, "", 1},
		"GitHub gives no token":        {&sources{run: push, branch: protected, mirror: lifecycle.ErrUnavailable}, []string{"go", "git"}, "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			withGit := func(o *fleet.Options) {
				p := o.Pools["default"]
				p.Caches = []cache.Spec{{Name: "go", Paths: []string{"~/go"}, Size: 1 << 30}, {Name: "git", Holds: cache.HoldsGit, Size: 1 << 30}}
				o.Pools["default"], o.Sources = p, tt.sources
			}
			inBubbleOf(t, withGit, func(ctx context.Context, t *testing.T, w *world) {
				go sweepOnceItWaits(ctx, w.fleet)
				w.mustProvision(ctx, demand("1", "a", 1))
				w.set(func() { w.mute = true }) // the host stays as the release leaves it
				freed := w.release(ctx, "1", false).Instances()
				r := w.record(freed[0].HostKey)
				if !slices.Equal(r.KeepCaches, tt.kept) || len(tt.sources.asked) != tt.asked {
					t.Errorf("kept %q: %s; asked %q", r.KeepCaches, r.Reason, tt.sources.asked)
				}
				switch {
				case tt.branch == "" && r.Mirror != nil:
					t.Errorf("its host has %v", *r.Mirror)
				case tt.branch != "" && (r.Mirror == nil || r.Mirror.Branch != tt.branch || r.Mirror.Token != "ghs_1" || r.Mirror.URL != "https://github/acme/app.git"):
					t.Errorf("its host has %v", r.Mirror)
				}
				w.set(func() { w.mute = false })
				time.Sleep(time.Minute)
				if r := w.record(freed[0].HostKey); !r.Pooled() || r.Mirror != nil {
					t.Errorf("a minute later the host is %s and has %v", r.Condition(), r.Mirror)
				}
			})
		})
	}
}
