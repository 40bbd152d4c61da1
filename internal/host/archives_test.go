package host_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// TestArchivesOfActions: the host fetches what a trusted run has used, once, and later runs find it where the runner looks for it.
func TestArchivesOfActions(t *testing.T) {
	t.Parallel()
	const sha = "0123456789abcdef0123456789abcdef01234567"
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	out := tar.NewWriter(zip)
	if out.WriteHeader(&tar.Header{Name: "checkout/action.yml", Mode: 0o644}) != nil || out.Close() != nil || zip.Close() != nil {
		t.Fatal("no archive")
	}
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/actions/checkout/tar.gz/"+sha {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(packed.Bytes())
	}))
	defer server.Close()

	b := newCachingBed(t, cache.Spec{Name: "tools", Holds: cache.HoldsActions, Size: 64 << 20})
	b.options.ArchivesURL = server.URL
	b.reopen()
	const archive = "home/actionarchivecache/actions_checkout/" + sha + ".tar.gz"
	use := func() {
		t.Helper()
		b.runWith("acme/app")
		if env := b.read("env-listener"); !strings.Contains(env, "ACTIONS_RUNNER_ACTION_ARCHIVE_CACHE="+b.path("home/actionarchivecache")+"\n") {
			t.Errorf("the environment of the listener is %s", env)
		}
		b.check(os.MkdirAll(b.path("runner/_diag"), 0o755))
		b.check(os.WriteFile(b.path("runner/_diag/Worker_1.log"), []byte("Check if action archive 'actions/checkout@"+sha+
			"' already exists in cache directory '/c'\nCheck if action archive 'acme/gone@"+sha+"' already exists in cache directory '/c'\n"), 0o644))
	}
	use()
	b.endRun(false)
	if n := asked.Load(); n != 0 {
		t.Errorf("after a run that may write nothing %d archives were asked for", n)
	}
	use()
	b.endRun(true)
	if n := asked.Load(); n != 2 {
		t.Errorf("%d archives were asked for, want the two of the run", n)
	}
	use()
	if got := b.read(archive); got != packed.String() {
		t.Errorf("the archive has %d bytes, want %d", len(got), packed.Len())
	}
	b.endRun(true)
	if n := asked.Load(); n != 3 {
		t.Errorf("%d archives were asked for, want only the missing one again", n)
	}

	// A server that is away costs nothing of what is there.
	server.Close()
	use()
	b.endRun(true)
	use()
	if got := b.read(archive); got != packed.String() {
		t.Errorf("after a failed download the archive has %d bytes, want %d", len(got), packed.Len())
	}
	b.endRun(false)
}
