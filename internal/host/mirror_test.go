package host_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/githubsim/githttp"
	"github.com/remuda-ci/remuda/internal/gittest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// endRunWithMirror ends a run that may write, with a token to fetch with, or one that may not.
func (b *bed) endRunWithMirror(m *lifecycle.Mirror) {
	b.Helper()
	c := agent.CleanUp{Assignment: 8, Mirror: m}
	if m != nil {
		c.KeepCaches = "git"
	}
	b.endRunBy(c)
}

// TestMirrorOfARepository: after a trusted run the host fetches its branch with the token of the release, and the next job takes its objects from there.
func TestMirrorOfARepository(t *testing.T) {
	t.Parallel()
	server, work := t.TempDir(), t.TempDir()
	gittest.Run(t, server, "init", "-q", "--bare", "acme/app.git")
	gittest.Run(t, work, "init", "-q")
	gittest.Run(t, work, "commit", "-q", "--allow-empty", "-m", "first")
	gittest.Run(t, work, "push", "-q", filepath.Join(server, "acme/app.git"), "HEAD:refs/heads/main")
	sha := gittest.Run(t, work, "rev-parse", "HEAD")
	backend, err := githttp.Backend(server)
	if err != nil {
		t.Fatal(err)
	}
	github := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "ghs_t0ken" {
			http.Error(w, "Repository not found.", http.StatusNotFound)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	defer github.Close()

	spec := cache.Spec{Name: "git", Holds: cache.HoldsGit, Size: 64 << 20}
	b := newCachingBed(t, spec)
	template := "GIT_TEMPLATE_DIR=" + b.path("home/gitmirror/template") + "\n"
	mirror := &lifecycle.Mirror{URL: github.URL + "/acme/app.git", Branch: "main", Token: "ghs_t0ken"}
	runWithout := func(why string) {
		t.Helper()
		b.runWith("acme/app")
		if env := b.read("env-listener"); strings.Contains(env, "GIT_TEMPLATE_DIR") {
			t.Errorf("%s the listener has %s", why, env)
		}
	}
	runWithout("without a mirror")
	b.endRunWithMirror(nil)
	runWithout("after a run that may write nothing")
	b.endRunWithMirror(&lifecycle.Mirror{URL: mirror.URL, Branch: "main", Token: "ghs_other"})
	runWithout("after a token that may not read it")
	b.endRunWithMirror(mirror)

	b.runWith("acme/app")
	if env := b.read("env-listener"); !strings.Contains(env, template) || strings.Contains(env, "ghs_") {
		t.Errorf("the environment of the listener is %s", env)
	}
	job := t.TempDir()
	gittest.Run(t, job, "init", "-q", "--template", b.path("home/gitmirror/template"), ".")
	if kind := gittest.Run(t, job, "cat-file", "-t", sha); kind != "commit" {
		t.Errorf("a job has %s of the commit", kind)
	}
	err = filepath.WalkDir(filepath.Dir(b.dir), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "ghs_") {
			t.Errorf("%s has a token", path)
		}
		return err
	})
	b.check(err)
	b.endRunWithMirror(nil)

	b.runWith("acme/app", spec.Key("acme/app"))
	if env := b.read("env-listener"); strings.Contains(env, "GIT_TEMPLATE_DIR") {
		t.Errorf("with a mirror that is dropped the listener has %s", env)
	}
	b.endRunWithMirror(nil)
}

// TestMirrorThatIsLate: a repository that did not come in time is left alone for a while.
func TestMirrorThatIsLate(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "no", http.StatusNotFound)
	}))
	defer server.Close()
	b := newCachingBed(t, cache.Spec{Name: "git", Holds: cache.HoldsGit, Size: 64 << 20})
	m := &lifecycle.Mirror{URL: server.URL + "/acme/app.git", Branch: "main", Token: "ghs_1"}
	late := b.path("state/mirror.late")
	run := func(want bool, when string) {
		t.Helper()
		before := asked.Load()
		b.runWith("acme/app")
		b.endRunWithMirror(m)
		if (asked.Load() > before) != want {
			t.Errorf("%s the server was asked %d times", when, asked.Load()-before)
		}
	}
	b.check(os.WriteFile(late, []byte(m.URL), 0o600))
	run(false, "soon after")
	old := time.Now().Add(-7 * time.Hour)
	b.check(os.Chtimes(late, old, old))
	run(true, "seven hours later")
	b.check(os.WriteFile(late, []byte(m.URL+".other"), 0o600))
	run(true, "of another repository")
}

// TestTokenThatIsLeft: a token that a killed clean-up has left is no part of the next one, which has none.
func TestTokenThatIsLeft(t *testing.T) {
	t.Parallel()
	b := newCachingBed(t, cache.Spec{Name: "git", Holds: cache.HoldsGit, Size: 64 << 20})
	b.runWith("acme/app")
	b.check(os.WriteFile(b.path("state/tasks/clean.mirror"), []byte(`{"url":"http://127.0.0.1:1/acme/app.git","branch":"main","token":"ghs_1"}`), 0o600))
	b.endRunWithMirror(nil)
	if _, err := os.Stat(b.path("state/tasks/clean.mirror")); !os.IsNotExist(err) {
		t.Errorf("the file of the token: %v", err)
	}
}
