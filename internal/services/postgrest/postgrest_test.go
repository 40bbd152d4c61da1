package postgrest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/postgrest"
)

func some(n int) *int { return &n }

// queue is jobs behind a handler.
func queue(t *testing.T, tokenFile string, handler http.HandlerFunc) *postgrest.Queue {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return postgrest.New(postgrest.Options{
		URL: server.URL + "/rest/v1/", Queued: "jobs?status=eq.queued&kind=in.(a,b)", Busy: "jobs?status=eq.running", TokenFile: tokenFile,
	})
}

// answer is what a server says to both counts.
func answer(status int, contentRange ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, v := range contentRange {
			w.Header().Add("Content-Range", v)
		}
		w.WriteHeader(status)
	}
}

func TestCountReadsContentRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   *int // nil: unknown
		err    error
		says   string
	}{
		{"some of them", answer(206, "0-0/17"), some(17), nil, ""},
		{"all of them", answer(200, "0-0/1"), some(1), nil, ""},
		{"none", answer(200, "*/0"), some(0), nil, ""},
		{"none, out of range", answer(416, "*/0"), some(0), nil, ""},
		{"out of range of some", answer(416, "*/3"), some(3), nil, ""},
		{"with its unit", answer(206, "items 0-0/17"), some(17), nil, ""},
		{"many", answer(206, "0-0/123456789012"), some(123456789012), nil, ""},
		{"not counted", answer(206, "0-24/*"), nil, lifecycle.ErrRefused, `Content-Range is "0-24/*", which tells no total`},
		{"nothing known", answer(200, "*/*"), nil, lifecycle.ErrRefused, "tells no total"},
		{"no header", answer(200), nil, lifecycle.ErrRefused, "0 Content-Range headers"},
		{"two headers", answer(200, "0-0/1", "0-0/2"), nil, lifecycle.ErrRefused, "2 Content-Range headers"},
		{"no number", answer(200, "0-0/many"), nil, lifecycle.ErrRefused, "tells no total"},
		{"below zero", answer(200, "0-0/-1"), nil, lifecycle.ErrRefused, "tells no total"},
		{"more after it", answer(200, "0-0/1; 2"), nil, lifecycle.ErrRefused, "tells no total"},
		{"too large to be one", answer(200, "0-0/99999999999999999999"), nil, lifecycle.ErrRefused, "tells no total"},
		{"a long one", answer(200, strings.Repeat("9", 5000)), nil, lifecycle.ErrRefused, "tells no total"},
		{"no token", answer(401), nil, lifecycle.ErrRefused, "give a token"},
		{"no right, with a count", answer(403, "*/0"), nil, lifecycle.ErrRefused, "give a token"},
		{"no table", answer(404), nil, lifecycle.ErrNotFound, "correct the url and the table"},
		{"no such column", answer(400), nil, lifecycle.ErrRefused, "status 400; correct the table and its filter"},
		{"too many requests", answer(429), nil, lifecycle.ErrUnavailable, "status 429"},
		{"down", answer(503, "*/0"), nil, lifecycle.ErrUnavailable, "status 503"},
		{"nothing", answer(204, "*/0"), nil, lifecycle.ErrRefused, "status 204"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := queue(t, "", tt.answer).Count(t.Context(), "jobs-eu")
			if diff := cmp.Diff(model.Backlog{Queued: tt.want, Busy: tt.want}, got); diff != "" {
				t.Errorf("count (-want +got):\n%s", diff)
			}
			switch {
			case tt.want != nil && err != nil, tt.want == nil && err == nil, !errors.Is(err, tt.err):
				t.Errorf("got error %v, want %v", err, tt.err)
			case tt.want == nil && (!strings.Contains(err.Error(), tt.says) ||
				!strings.Contains(err.Error(), "count queued jobs of service jobs-eu in table jobs") || len(err.Error()) > 500):
				t.Errorf("got error %q, want one that says %q", err, tt.says)
			}
		})
	}
}

func TestCountAsksForTheNumberAndForNoRow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("  s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked []string
	q := queue(t, file, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		want := map[string]string{
			"Prefer": "count=exact", "Range": "0-0", "Range-Unit": "items", "Authorization": "Bearer s3cret", "Apikey": "s3cret",
		}
		for name, value := range want {
			if got := r.Header.Get(name); got != value {
				t.Errorf("%s: got %q, want %q", name, got, value)
			}
		}
		answer(206, map[string]string{"eq.queued": "0-0/3", "eq.running": "0-0/2"}[r.URL.Query().Get("status")])(w, r)
	})
	got, err := q.Count(t.Context(), "jobs-eu")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(model.Backlog{Queued: some(3), Busy: some(2)}, got); diff != "" {
		t.Error(diff)
	}
	want := []string{"HEAD /rest/v1/jobs?status=eq.queued&kind=in.(a,b)", "HEAD /rest/v1/jobs?status=eq.running"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// What is not known of one kind of jobs hides nothing of the other.
func TestOneCountThatFailsKeepsTheOther(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]model.Backlog{
		"eq.queued": {Busy: some(5)}, "eq.running": {Queued: some(5)},
	} {
		got, err := queue(t, "", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("status") == status {
				answer(500)(w, r)
				return
			}
			answer(206, "0-0/5")(w, r)
		}).Count(t.Context(), "jobs-eu")
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("without %s: error %v (-want +got):\n%s", status, err, diff)
		}
	}
}

func TestAServerWithoutHeadIsAskedForARow(t *testing.T) {
	t.Parallel()
	for _, status := range []int{405, 501} {
		got, err := queue(t, "", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				answer(status)(w, r)
				return
			}
			answer(206, "0-0/4")(w, r)
			_, _ = w.Write([]byte(strings.Repeat("x", 1<<20))) // more than is read
		}).Count(t.Context(), "jobs-eu")
		if diff := cmp.Diff(model.Backlog{Queued: some(4), Busy: some(4)}, got); diff != "" || err != nil {
			t.Errorf("status %d: error %v\n%s", status, err, diff)
		}
	}
}

// The token goes only to the server that was configured.
func TestRedirectsAreRefused(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Store(true)
		answer(200, "*/0")(w, r)
	}))
	defer other.Close()
	_, err := queue(t, "", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}).Count(t.Context(), "jobs-eu")
	if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), "redirect") || reached.Load() {
		t.Errorf("got error %v, followed: %t", err, reached.Load())
	}
}

func TestTheToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"empty": "", "blank": " \n\n", "two": "one\ntwo\n", "long": strings.Repeat("x", 17<<10)} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := queue(t, file, func(http.ResponseWriter, *http.Request) { t.Errorf("%s: asked without a token", name) }).Count(t.Context(), "jobs-eu")
		if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "one\n") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	_, err := queue(t, filepath.Join(dir, "nowhere"), answer(200, "*/0")).Count(t.Context(), "jobs-eu")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got error %v", err)
	}
}

func TestASlowServerIsGivenUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	q := queue(t, "", func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	got, err := q.Count(ctx, "jobs-eu")
	if !errors.Is(err, lifecycle.ErrUnavailable) || got != (model.Backlog{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
