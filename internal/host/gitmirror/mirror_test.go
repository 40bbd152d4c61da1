package gitmirror_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/githttp"
	"github.com/remuda-ci/remuda/internal/gittest"
	"github.com/remuda-ci/remuda/internal/host/gitmirror"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const token = "ghs_t0ken"

// world is a repository on a server of git itself, and its mirror on a host.
type world struct {
	testing.TB
	dir      string // of everything
	url      string
	asked    atomic.Int32
	layers   []string // the newest first
	redirect atomic.Bool
	random   *rand.ChaCha8
}

func newWorld(t testing.TB) *world {
	w := &world{TB: t, dir: t.TempDir(), random: rand.NewChaCha8([32]byte{})}
	w.git(w.dir, "init", "-q", "--bare", "acme/app.git")
	w.git(w.dir, "init", "-q", "work")
	backend, err := githttp.Backend(w.dir)
	check(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		_, password, _ := r.BasicAuth()
		switch {
		case w.redirect.Load():
			http.Redirect(rw, r, "/elsewhere"+r.URL.RequestURI(), http.StatusFound)
		case password != token: // as GitHub does, also for a token that may not read it
			rw.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
			http.Error(rw, "Repository not found.", http.StatusUnauthorized)
		default:
			backend.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(server.Close)
	w.url = server.URL + "/acme/app.git"
	return w
}

func (w *world) git(dir string, args ...string) string {
	w.Helper()
	return gittest.Run(w, dir, args...)
}

// commit adds a commit with a file of 100 kB that does not compress, and pushes it to a branch. It returns its SHA.
func (w *world) commit(branch string) string {
	w.Helper()
	repository := filepath.Join(w.dir, "work")
	data := make([]byte, 100_000)
	_, _ = w.random.Read(data) // it does not fail
	n, _ := filepath.Glob(repository + "/file-*")
	check(w.TB, os.WriteFile(filepath.Join(repository, fmt.Sprintf("file-%d", len(n))), append([]byte(branch+strconv.Itoa(len(n))), data...), 0o600))
	w.git(repository, "add", "-A")
	w.git(repository, "commit", "-q", "-m", "one more")
	w.git(repository, "push", "-q", "-f", filepath.Join(w.dir, "acme/app.git"), "HEAD:refs/heads/"+branch)
	return w.git(repository, "rev-parse", "HEAD")
}

// at is where jobs see the mirror.
func (w *world) at() string { return filepath.Join(w.dir, "home/gitmirror") }

func (w *world) mirror(branch string) gitmirror.Mirror {
	return gitmirror.Mirror{
		Mirror: lifecycle.Mirror{URL: w.url, Branch: branch, Token: token}, At: w.at(), Largest: 1 << 30,
	}
}

// fetch adds a layer, and shows all of them to jobs.
func (w *world) fetch(m gitmirror.Mirror) (gitmirror.Change, error) {
	w.Helper()
	layer, err := os.MkdirTemp(w.dir, "layer-")
	check(w.TB, err)
	c, err := m.Fetch(w.Context(), w.layers, layer)
	if err != nil || c.Packs == 0 {
		left, readErr := os.ReadDir(layer)
		check(w.TB, readErr)
		if len(left) > 0 {
			w.Errorf("after %+v, %v the layer has %v", c, err, left)
		}
		return c, err
	}
	if c.Whole {
		w.layers = nil
	}
	w.layers = append([]string{layer}, w.layers...)
	check(w.TB, os.RemoveAll(w.at()))
	check(w.TB, os.MkdirAll(w.at(), 0o755))
	for i := len(w.layers) - 1; i >= 0; i-- {
		if out, err := exec.Command("cp", "-a", w.layers[i]+"/.", w.at()).CombinedOutput(); err != nil {
			w.Fatalf("%v: %s", err, out)
		}
	}
	return c, nil
}

func (w *world) mustFetch(branch string) gitmirror.Change {
	w.Helper()
	c, err := w.fetch(w.mirror(branch))
	check(w.TB, err)
	return c
}

// job checks a commit out as actions/checkout does (src/git-source-provider.ts): git init, git fetch, git checkout. It returns the kB that it has
// got from the server. Another process reads the repository without the environment of the job.
func (w *world) job(sha string, depth int) int {
	w.Helper()
	dir := w.TempDir()
	w.fetchOfJob(sha, depth, dir)
	kB := w.kBOf(dir)
	w.git(dir, "checkout", "-q", "--detach", "refs/remotes/origin/main")
	w.git(dir, "fsck", "--strict", "--no-dangling")
	w.git(dir, "log", "-p", "--format=%H")
	w.Logf("depth %d: %d kB", depth, kB)
	return kB
}

func (w *world) fetchOfJob(sha string, depth int, dir string) {
	w.Helper()
	w.Setenv("GIT_TEMPLATE_DIR", filepath.Join(w.at(), gitmirror.Template))
	w.git(dir, "init", "-q")
	args := []string{"-c", "http.extraHeader=Authorization: Basic eDpnaHNfdDBrZW4=", "fetch", "-q", "--no-tags", "--prune"}
	if depth > 0 {
		args = append(args, "--depth="+strconv.Itoa(depth))
	}
	w.git(dir, append(args, w.url, "+"+sha+":refs/remotes/origin/main")...)
	check(w.TB, os.Unsetenv("GIT_TEMPLATE_DIR"))
}

func (w *world) kBOf(dir string) (kB int) {
	w.Helper()
	for line := range strings.Lines(w.git(dir, "count-objects", "-v")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.Atoi(value); err == nil && (name == "size" || name == "size-pack") {
			kB += n
		}
	}
	return kB
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A job reads what the mirror has, and fetches what is new, whatever its depth.
func TestJobsReadTheMirror(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		w.commit("main")
	}
	if c := w.mustFetch("main"); c != (gitmirror.Change{Packs: 1, Whole: true}) {
		t.Errorf("the first fetch: %+v", c)
	}
	feature := w.commit("feature")
	for _, depth := range []int{1, 2, 0} {
		if kB := w.job(feature, depth); kB > 150 {
			t.Errorf("with depth %d a job got %d kB, and one commit of 100 kB is new", depth, kB)
		}
	}
	w.layers = nil
	check(t, os.RemoveAll(w.at()))
	if kB := w.job(feature, 0); kB < 500 {
		t.Errorf("without a mirror a job got %d kB, so that this proves nothing", kB)
	}
}

// A fetch adds what is new, and nothing if nothing is.
func TestFetchAddsWhatIsNew(t *testing.T) {
	w := newWorld(t)
	w.commit("main")
	w.mustFetch("main")
	if c := w.mustFetch("main"); c.Packs != 0 {
		t.Errorf("of a branch that has not moved: %+v", c)
	}
	last := w.commit("main")
	if c := w.mustFetch("main"); c != (gitmirror.Change{Packs: 1}) {
		t.Errorf("of one more commit: %+v", c)
	}
	packs, err := filepath.Glob(filepath.Join(w.layers[0], "objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("the newest layer has %v, %v", packs, err)
	}
	if info, err := os.Stat(packs[0]); err != nil || info.Size() > 150_000 {
		t.Errorf("the pack of one commit of 100 kB has %d bytes, %v", info.Size(), err)
	}
	if kB := w.job(last, 0); kB > 10 {
		t.Errorf("a job got %d kB of what the mirror has", kB)
	}
	asked := w.asked.Load()
	w.commit("main")
	m := w.mirror("main")
	m.Fresh = time.Hour
	if c, err := w.fetch(m); err != nil || c.Packs != 0 || w.asked.Load() != asked {
		t.Errorf("of a fresh mirror: %+v, %v, and the server was asked %d times", c, err, w.asked.Load()-asked)
	}
	m.Branch = "release"
	w.commit("release")
	if c, err := w.fetch(m); err != nil || c.Packs != 1 {
		t.Errorf("of a branch that a fresh mirror does not have: %+v, %v", c, err)
	}
}

// Many packs become one, and what the mirror had before is not needed then.
func TestPacksBecomeOne(t *testing.T) {
	w := newWorld(t)
	var last string
	whole := 0
	for range 18 {
		last = w.commit("main")
		if w.mustFetch("main").Whole {
			whole++
		}
		if n := len(w.layers); n > 15 {
			t.Fatalf("%d layers, each with a pack", n)
		}
	}
	if whole != 2 { // the first, and that of one more than 15
		t.Errorf("%d times the mirror was made whole", whole)
	}
	if kB := w.job(last, 0); kB > 10 {
		t.Errorf("a job got %d kB of what the mirror has", kB)
	}
}

// A branch that was overwritten stays readable for what the mirror has of it.
func TestForcedPush(t *testing.T) {
	w := newWorld(t)
	w.commit("main")
	w.mustFetch("main")
	work := filepath.Join(w.dir, "work")
	w.git(work, "checkout", "-q", "--orphan", "other")
	last := w.commit("main")
	if c := w.mustFetch("main"); c.Packs != 1 {
		t.Errorf("%+v", c)
	}
	w.job(last, 0)
}

// What goes wrong leaves nothing, names what it is of, and shows no token.
func TestFetchFails(t *testing.T) {
	tests := map[string]struct {
		edit func(w *world, m *gitmirror.Mirror)
		want string
	}{
		"a token that may not read it": {func(_ *world, m *gitmirror.Mirror) { m.Token = "ghs_other" }, "terminal prompts disabled"},
		"no such repository":           {func(w *world, m *gitmirror.Mirror) { m.URL = strings.Replace(w.url, "app", "nothing", 1) }, "not found"},
		"no such branch":               {func(_ *world, m *gitmirror.Mirror) { m.Branch = "nothing" }, "couldn't find remote ref"},
		"a redirection":                {func(w *world, _ *gitmirror.Mirror) { w.redirect.Store(true) }, "302"},
		"more than its size":           {func(_ *world, m *gitmirror.Mirror) { m.Largest = 50_000 }, "git fetch"},
		"an address with a user":       {func(_ *world, m *gitmirror.Mirror) { m.URL = "https://x:y@host/acme/app.git" }, "is not https://"},
		"another protocol":             {func(_ *world, m *gitmirror.Mirror) { m.URL = "ext::sh -c true" }, "is not https://"},
		"an option":                    {func(_ *world, m *gitmirror.Mirror) { m.URL = "--upload-pack=true" }, "is not https://"},
		"a file":                       {func(w *world, m *gitmirror.Mirror) { m.URL = "file://" + w.dir + "/acme/app.git" }, "is not https://"},
		"a pattern for a branch":       {func(_ *world, m *gitmirror.Mirror) { m.Branch = "*" }, "no branch"},
		"two branches":                 {func(_ *world, m *gitmirror.Mirror) { m.Branch = "main:refs/heads/x" }, "no branch"},
		"no branch":                    {func(_ *world, m *gitmirror.Mirror) { m.Branch = "" }, "no branch"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.commit("main")
			m := w.mirror("main")
			test.edit(w, &m)
			_, err := w.fetch(m)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			if strings.Contains(err.Error(), "ghs_") || strings.Contains(err.Error(), "x:y@") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

// A fetch that is cut short leaves no process and no file.
func TestFetchCutShort(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done() // the program of git that asks has ended
		close(gone)
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	m := gitmirror.Mirror{Mirror: lifecycle.Mirror{URL: server.URL + "/acme/app.git", Branch: "main", Token: token}, Largest: 1 << 30}
	go func() {
		<-arrived
		cancel()
	}()
	dir := t.TempDir()
	if _, err := m.Fetch(ctx, nil, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	<-gone
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A branch is as fresh as its own last fetch: one that others are fetched beside does not go stale.
func TestFreshnessIsOfTheBranch(t *testing.T) {
	w := newWorld(t)
	w.commit("main")
	w.mustFetch("main")
	w.ageAll(time.Hour)
	w.commit("dev")
	w.mustFetch("dev")
	w.commit("main")
	m := w.mirror("main")
	m.Fresh = 10 * time.Minute
	if c, err := w.fetch(m); err != nil || c.Packs != 1 {
		t.Errorf("of a branch that was fetched an hour ago, in a mirror that got another one just now: %+v, %v", c, err)
	}
}

// ageAll has all branches fetched earlier by some time.
func (w *world) ageAll(by time.Duration) {
	w.Helper()
	file := filepath.Join(w.layers[0], "fetched-at")
	data, err := os.ReadFile(file)
	check(w.TB, err)
	var text strings.Builder
	for line := range strings.Lines(string(data)) {
		seconds, ref, _ := strings.Cut(line, " ")
		at, err := strconv.ParseInt(seconds, 10, 64)
		check(w.TB, err)
		fmt.Fprintf(&text, "%d %s", at-int64(by.Seconds()), ref)
	}
	check(w.TB, os.WriteFile(file, []byte(text.String()), 0o644))
}

// The branches of a merge queue are each fetched once, and come before main by their names. They leave room for it.
func TestMoreBranchesThanAMirrorKnows(t *testing.T) {
	w := newWorld(t)
	sha := w.commit("main")
	w.mustFetch("main")
	var refs strings.Builder
	for i := range 64 {
		fmt.Fprintf(&refs, "%s refs/heads/gh-readonly-queue/main/pr-%02d\n", sha, i)
	}
	check(t, os.WriteFile(filepath.Join(w.layers[0], "packed-refs"), []byte("# pack-refs with: sorted \n"+refs.String()), 0o644))
	last := w.commit("main")
	if c := w.mustFetch("main"); c.Packs != 1 {
		t.Errorf("main is not fetched any more: %+v", c)
	}
	if kB := w.job(last, 0); kB > 10 {
		t.Errorf("a job got %d kB of what the mirror has", kB)
	}
	if n := strings.Count(w.git(w.at(), "for-each-ref"), "refs/heads/"); n != 64 {
		t.Errorf("%d branches are known, want 64", n)
	}
}

// A branch that was deleted can have been a directory in the name of another, or the other way round.
func TestBranchInTheWayOfAnother(t *testing.T) {
	w := newWorld(t)
	bare := filepath.Join(w.dir, "acme/app.git")
	for _, name := range []string{"release", "release/1", "release"} {
		last := w.commit(name)
		if c := w.mustFetch(name); c.Packs != 1 {
			t.Errorf("%s: %+v", name, c)
		}
		if kB := w.job(last, 0); kB > 10 {
			t.Errorf("a job got %d kB of what the mirror has", kB)
		}
		w.git(bare, "update-ref", "-d", "refs/heads/"+name)
	}
}
