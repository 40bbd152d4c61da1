package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/host/archive"
)

const sha = "0123456789abcdef0123456789abcdef01234567"

var checkout = archive.Action{Owner: "actions", Repository: "checkout", SHA: sha}

// logged is the line of a worker about an action.
func logged(action string) string {
	return "[2026-11-28 09:00:00Z INFO ActionManager] Check if action archive '" + action + "' already exists in cache directory '/home/runner/actionarchivecache'\n"
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestUsed(t *testing.T) {
	t.Parallel()
	runner := t.TempDir()
	put(t, runner+"/_diag/Worker_1.log", "started\n"+logged("actions/checkout@"+sha)+logged("actions/checkout@"+sha)+
		strings.Repeat("x", 200<<10)+"\n"+logged("acme_corp/setup.it-2@"+strings.Repeat("a", 40)))
	put(t, runner+"/_diag/Worker_2.log", logged("../..@"+sha)+logged("actions/..@"+sha)+logged("actions/.@"+sha)+logged("a/b/c@"+sha)+
		logged("actions/checkout@v4")+logged("actions/checkout@"+strings.ToUpper(sha))+logged("-x/y@"+sha)+logged("a/b@"+sha+"0"))
	put(t, runner+"/_diag/Runner_1.log", logged("not/aworker@"+sha))
	outside := t.TempDir()
	put(t, outside+"/log", logged("out/side@"+sha))
	if err := os.Symlink(outside+"/log", runner+"/_diag/Worker_3.log"); err != nil {
		t.Fatal(err)
	}
	want := map[archive.Action]bool{checkout: true, {Owner: "acme_corp", Repository: "setup.it-2", SHA: strings.Repeat("a", 40)}: true}
	used, err := archive.Used(runner)
	got := map[archive.Action]bool{}
	for _, a := range used {
		got[a] = true
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(used) != len(want) {
		t.Errorf("%v, %v (-want +got):\n%s", used, err, diff)
	}
}

func TestUsedIsBounded(t *testing.T) {
	t.Parallel()
	runner := t.TempDir()
	var log strings.Builder
	for i := range 2 * archive.MostActions {
		log.WriteString(logged(fmt.Sprintf("actions/a%d@%s", i, sha)))
	}
	put(t, runner+"/_diag/Worker_1.log", log.String())
	put(t, runner+"/_diag/Worker_2.log", strings.ReplaceAll(log.String(), "actions/a", "actions/b"))
	if used, err := archive.Used(runner); err != nil || len(used) != archive.MostActions {
		t.Errorf("%d actions, %v", len(used), err)
	}
	if _, err := archive.Used(t.TempDir()); err == nil {
		t.Error("a runner without logs has used something")
	}
}

// entry is a member of an archive.
type entry struct {
	name, commit string
	kind         byte
}

func packed(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var all bytes.Buffer
	zip := gzip.NewWriter(&all)
	out := tar.NewWriter(zip)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644}
		if e.kind == tar.TypeXGlobalHeader {
			h = &tar.Header{Typeflag: e.kind, PAXRecords: map[string]string{"comment": e.commit}}
		}
		if err := out.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if out.Close() != nil || zip.Close() != nil {
		t.Fatal("not closed")
	}
	return all.Bytes()
}

func TestFetch(t *testing.T) {
	t.Parallel()
	of := func(commit string) entry { return entry{kind: tar.TypeXGlobalHeader, commit: commit} }
	dir, file := entry{name: "checkout-0123/", kind: tar.TypeDir}, entry{name: "checkout-0123/action.yml", kind: tar.TypeReg}
	whole := packed(t, of(sha), dir, file)
	broken := bytes.Clone(whole)
	broken[len(broken)-6] ^= 1 // in the checksum
	tests := map[string]struct {
		status int
		body   []byte
		want   string // part of the error; empty: none
	}{
		"whole":                 {200, whole, ""},
		"without its commit":    {200, packed(t, dir, file), ""},
		"of another commit":     {200, packed(t, of(strings.Repeat("f", 40)), dir, file), "of the commit"},
		"missing":               {404, whole, "404"},
		"a page":                {200, []byte("<html>sign in first</html>"), "gzip"},
		"cut short":             {200, whole[:len(whole)-20], "unexpected EOF"},
		"with another checksum": {200, broken, "checksum"},
		"empty":                 {200, packed(t), "empty"},
		"two directories":       {200, packed(t, dir, file, entry{name: "more/file", kind: tar.TypeReg}), "beside"},
		"a file beside it":      {200, packed(t, dir, entry{name: "file", kind: tar.TypeReg}), "beside"},
		"a file above it":       {200, packed(t, entry{name: "../file", kind: tar.TypeReg}), "beside"},
		"a file in the root":    {200, packed(t, dir, entry{name: "/file", kind: tar.TypeReg}), "beside"},
		"nothing":               {200, nil, "EOF"},
		"larger than may be":    {200, make([]byte, 65<<20), "larger"},
		"a bomb of zeros":       {200, bomb(t), "unpacked"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path
				w.WriteHeader(tt.status)
				_, _ = w.Write(tt.body)
			}))
			defer server.Close()
			to := t.TempDir()
			err := archive.Fetcher{URL: server.URL, Transport: server.Client().Transport}.Fetch(t.Context(), checkout, to)
			if asked != "/actions/checkout/tar.gz/"+sha {
				t.Errorf("it asked for %s", asked)
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want one with %q", err, tt.want)
			}
			var left []string
			_ = filepath.WalkDir(to, func(path string, d fs.DirEntry, _ error) error {
				if path != to {
					left = append(left, strings.TrimPrefix(path, to+"/"))
				}
				return nil
			})
			var want []string
			if tt.want == "" {
				want = []string{"actions_checkout", "actions_checkout/" + sha + ".tar.gz"}
				if got, err := os.ReadFile(filepath.Join(to, checkout.Path())); err != nil || !bytes.Equal(got, tt.body) {
					t.Errorf("another archive is there: %d bytes, %v", len(got), err)
				}
			}
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("left in the directory (-want +got):\n%s", diff)
			}
		})
	}
}

// bomb is an archive of a few MiB that is larger than may be when it is unpacked.
func bomb(t *testing.T) []byte {
	t.Helper()
	var all bytes.Buffer
	zip, err := gzip.NewWriterLevel(&all, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	out := tar.NewWriter(zip)
	if err := out.WriteHeader(&tar.Header{Name: "a/b", Typeflag: tar.TypeReg, Size: 600 << 20}); err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range 600 {
		if _, err := out.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if out.Close() != nil || zip.Close() != nil {
		t.Fatal("not closed")
	}
	return all.Bytes()
}

func TestFetchThatTakesTooLong(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("a beginning"))
		w.(http.Flusher).Flush()
		<-stop
	}))
	defer server.Close()
	defer close(stop)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to := t.TempDir()
	if err := (archive.Fetcher{URL: server.URL, Transport: server.Client().Transport}).Fetch(ctx, checkout, to); err == nil {
		t.Error("it waited for the end")
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
