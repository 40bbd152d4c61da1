package published_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/history/published"
)

const (
	commit = "0123456789abcdef0123456789abcdef01234567"
	later  = `{"job_id": 2, "run_id": 5, "status": "completed", "runner_name": "b", "labels": ["small"],` +
		` "created_at": "2026-04-24T09:00:00Z", "started_at": "2026-04-24T09:00:30Z", "completed_at": "2026-04-24T09:05:00Z"}` + "\n"
	earlier = `{"job_id": 1, "run_id": 4, "status": "completed", "runner_name": "a", "labels": [],` +
		` "created_at": "2026-04-23T09:00:00Z", "started_at": "2026-04-23T09:00:30Z", "completed_at": "2026-04-23T09:05:00Z"}` + "\n"
	skipped = `{"job_id": 3, "run_id": 4, "status": "completed", "runner_name": "", "labels": [],` +
		` "created_at": "2026-04-23T09:00:00Z", "started_at": "2026-04-23T09:00:00Z", "completed_at": "2026-04-23T09:00:00Z"}` + "\n"
)

// file is what a record says of a file with this text.
func file(path, text string) published.File {
	sum := sha256.Sum256([]byte(text))
	return published.File{Path: path, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}
}

// record is a made-up record of two files.
func record() published.Record {
	return published.Record{
		Name: "made-up", Repository: "acme/ci-days", Commit: commit,
		Files:   []published.File{file("days/b.jsonl", later+skipped), file("days/a.jsonl", earlier+skipped)},
		Convert: published.IREE().Convert,
	}
}

// served answers with the files of the record, and otherwise that there is nothing.
func served(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/acme/ci-days/" + commit + "/days/b.jsonl":
		fmt.Fprint(w, later+skipped)
	case "/acme/ci-days/" + commit + "/days/a.jsonl":
		fmt.Fprint(w, earlier+skipped)
	default:
		http.NotFound(w, r)
	}
}

func quiet(string) {}

// TestRead: all files of a record make one history, in the order of its jobs, from a server as from a directory.
func TestRead(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(served))
	defer server.Close()
	dir := t.TempDir()
	for path, text := range map[string]string{"b.jsonl": later + skipped, "a.jsonl": earlier + skipped} {
		path = filepath.Join(dir, "acme", "ci-days", commit, "days", path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for name, from := range map[string]published.Source{"server": published.Web(server.URL), "directory": published.Directory(dir)} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			got, err := record().Read(t.Context(), from, func(line string) { lines = append(lines, line) })
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"made-up: file 1 of 2: days/b.jsonl of acme/ci-days, 1 KiB", "made-up: file 2 of 2: days/a.jsonl of acme/ci-days, 1 KiB"}
			if diff := cmp.Diff(want, lines); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[published.Reason]int{"no runner ever had": 2}, got.LeftOut); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			csv, err := got.CSV()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(`repository,labels,created_at,started_at,completed_at,run_id,job_id
iree-org/iree,,2026-04-23T09:00:00Z,2026-04-23T09:00:30Z,2026-04-23T09:05:00Z,4,1
iree-org/iree,small,2026-04-24T09:00:00Z,2026-04-24T09:00:30Z,2026-04-24T09:05:00Z,5,2
`, string(csv)); diff != "" {
				t.Errorf("CSV (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDownloadsThatFail: the error has the address, what was wrong, and what to do.
func TestDownloadsThatFail(t *testing.T) {
	t.Parallel()
	whole := later + skipped
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"not there":        {http.NotFound, "the server says 404 Not Found: the repository, or this commit of it, is not public anymore; a copy of the file still does (make months FROM=DIR)"},
		"not now":          {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "the server says 503 Service Unavailable; try again later"},
		"a strange status": {strange, "the server says 500 Internal Server Error; try again later"},
		"another file":     {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.ToUpper(whole)) }, "its SHA-256 is "},
		"too large":        {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, whole+"x") }, fmt.Sprintf("it has more than its %d bytes, so it is not the file that was pinned", len(whole))},
		"much too large":   {endless, fmt.Sprintf("it has more than its %d bytes, so it is not the file that was pinned", len(whole))},
		"too small":        {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, later) }, fmt.Sprintf("it ends after %d of %d bytes; try again", len(later), len(whole))},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			fmt.Fprint(w, later)
			_ = http.NewResponseController(w).Flush() // it fails as the reading will
			panic(http.ErrAbortHandler)
		}, fmt.Sprintf("it ends after %d of %d bytes; try again", len(later), len(whole))},
		"an error page": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "it ends after 6 of "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.answer)
			defer server.Close()
			_, err := record().Read(t.Context(), published.Web(server.URL), quiet)
			want := "read " + server.URL + "/acme/ci-days/" + commit + "/days/b.jsonl: " + test.want
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("the error is\n%v, want\n%s", err, want)
			}
		})
	}
}

// strange has a text beside its status that would command a terminal.
func strange(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprint(conn, "HTTP/1.1 500 \x1b]0;owned\a\r\nContent-Length: 0\r\n\r\n")
}

// endless answers for as long as the client listens.
func endless(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := fmt.Fprint(w, later); err != nil {
			return
		}
	}
}

// TestNoServer: a server that cannot be asked is named once, and with what to do. A reading that was interrupted says that alone.
func TestNoServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(served))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := record().Read(canceled, published.Web(server.URL), quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want that the context was canceled", err)
	}
	server.Close()
	_, err := record().Read(t.Context(), published.Web(server.URL), quiet)
	if err == nil || !strings.HasSuffix(err.Error(), "; try again, or without the internet from a copy (make months FROM=DIR)") || strings.Count(err.Error(), server.URL) != 1 {
		t.Errorf("the error is %v", err)
	}
}

// TestFilesThatAreWrong: what is wrong in a directory, and in a file that has the right sum.
func TestFilesThatAreWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := filepath.Join(dir, "acme", "ci-days", commit, "days")
	if err := os.MkdirAll(filepath.Join(at, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"wrong": "{", "empty": "", "skipped": skipped} {
		if err := os.WriteFile(filepath.Join(at, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		file published.File
		want string
	}{
		"not there":  {file("days/none", "x"), "read " + filepath.Join(at, "none") + ": there is no such file; git show COMMIT:PATH in a clone of the repository makes it"},
		"no file":    {file("days/folder", "x"), "read " + filepath.Join(at, "folder") + ": after 0 of 1 bytes: "},
		"no jobs":    {file("days/wrong", "{"), "convert " + filepath.Join(at, "wrong") + ": line 1: read a job: "},
		"empty":      {file("days/empty", ""), "convert made-up: there are no jobs in it"},
		"none there": {file("days/skipped", skipped), "convert made-up: there are no jobs in it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record()
			r.Files = []published.File{test.file}
			_, err := r.Read(t.Context(), published.Directory(dir), quiet)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("the error is\n%v, want\n%s", err, test.want)
			}
		})
	}
}

var (
	hex40 = regexp.MustCompile(`^[0-9a-f]{40}$`)
	hex64 = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// TestRecords: what is pinned can be asked for, each record is described, and what is made of it is not committed.
func TestRecords(t *testing.T) {
	t.Parallel()
	const root = "../../../"
	page, err := os.ReadFile(root + "examples/history/README.md")
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := os.ReadFile(root + ".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range published.Records() {
		if !history.IsRepository(r.Repository) || !hex40.MatchString(r.Commit) || len(r.Files) == 0 {
			t.Errorf("%s: repository %q, commit %q, %d files", r.Name, r.Repository, r.Commit, len(r.Files))
		}
		if !strings.Contains(string(page), "\n## "+r.Name+".csv\n") || !strings.Contains(string(page), "/"+r.Repository+"/commit/"+r.Commit) {
			t.Errorf("examples/history/README.md has no section %s.csv with the commit %s of %s", r.Name, r.Commit, r.Repository)
		}
		if !strings.Contains(string(ignored), "\n/examples/history/"+r.Name+".csv\n") {
			t.Errorf(".gitignore lacks %s.csv", r.Name)
		}
		seen := map[string]bool{}
		for _, f := range r.Files {
			if seen[f.Path] || !hex64.MatchString(f.SHA256) || f.Size <= 0 || f.Size > 4<<20 {
				t.Errorf("%s: %+v", r.Name, f)
			}
			seen[f.Path] = true
		}
	}
}
