package outer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/site/outer"
)

// server is another server, on this machine.
func server(t *testing.T) (address string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	mux, flaky, busy := http.NewServeMux(), atomic.Int64{}, atomic.Int64{}
	page := func(path, html string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, html)
		})
	}
	page("/page", `<h1 id="top">Top</h1><a name="old">old</a><h2 id="user-content-made">made</h2>`)
	page("/long", "<p>"+strings.Repeat("text ", 2<<20))
	mux.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "plain") })
	for path, status := range map[string]int{"/moved": http.StatusMovedPermanently, "/elsewhere": http.StatusFound} {
		mux.Handle(path, http.RedirectHandler("/page", status))
	}
	mux.Handle("/lost", http.RedirectHandler("/none", http.StatusMovedPermanently))
	mux.Handle("/on", http.RedirectHandler("/on", http.StatusFound))
	mux.HandleFunc("/private", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	mux.HandleFunc("/gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/flaky", func(w http.ResponseWriter, _ *http.Request) {
		if flaky.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		if n := busy.Add(1); n < 3 {
			w.Header().Set("Retry-After", map[int64]string{1: "7", 2: "3600"}[n])
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if !strings.Contains(r.UserAgent(), "remuda") {
			t.Errorf("%s is asked for as %q", r.URL, r.UserAgent())
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// sleeps notes each wait in the place of waiting.
type sleeps []time.Duration

func (s *sleeps) sleep(_ context.Context, d time.Duration) error {
	*s = append(*s, d)
	return nil
}

func TestCheck(t *testing.T) {
	for path, c := range map[string]struct{ problem, note string }{
		"/page":         {},
		"/page#top":     {},
		"/page#old":     {},
		"/page#made":    {},
		"/page#missing": {problem: "the page has no such place"},
		"/text#any":     {},
		"/long#any":     {}, // not all of it is read
		"/none":         {problem: "the answer is 404 Not Found"},
		"/none#place":   {problem: "the answer is 404 Not Found"},
		"/gone":         {problem: "the answer is 410 Gone"},
		"/moved":        {note: "it has moved to ADDRESS/page"},
		"/elsewhere":    {},
		"/lost":         {problem: "the answer is 404 Not Found"},
		"/on":           {problem: "it leads on and on, by redirects"},
		"/private":      {note: "the answer to a program is 403 Forbidden: look with a browser"},
		"/broken":       {problem: "the answer is 502 Bad Gateway"},
		"/silent":       {problem: "there is no answer within 20ms"},
		"/flaky":        {},
	} {
		t.Run(path, func(t *testing.T) {
			address, _ := server(t)
			timeout := time.Minute
			if path == "/silent" {
				timeout = 20 * time.Millisecond
			}
			checker := outer.Checker{Timeout: timeout, Tries: 2, Sleep: new(sleeps).sleep}
			got, err := checker.Check(t.Context(), map[string][]string{address + path: {"a.html", "b.html"}})
			want := outer.Report{Addresses: 1}
			says := func(text string) []string {
				if text == "" {
					return nil
				}
				return []string{"a.html, b.html: " + address + path + ": " + strings.ReplaceAll(text, "ADDRESS", address)}
			}
			want.Problems, want.Notes = says(c.problem), says(c.note)
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("%v (-want +got)\n%s", err, d)
			}
		})
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	checker := outer.Checker{Timeout: time.Minute, Tries: 2}
	got, err := checker.Check(t.Context(), map[string][]string{s.URL: {"a.html"}})
	if err != nil || len(got.Problems) != 1 || !strings.HasPrefix(got.Problems[0], "a.html: "+s.URL+": there is no answer: ") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPolite: an address is asked for once whatever its places are, a server waits for the next question, and one that is busy says for how long.
func TestPolite(t *testing.T) {
	first, asked := server(t)
	second, others := server(t)
	var waits sleeps
	checker := outer.Checker{Timeout: time.Minute, Pause: time.Second, Tries: 3, Sleep: waits.sleep}
	_, err := checker.Check(t.Context(), map[string][]string{
		first + "/page#top": nil, first + "/page#old": nil, first + "/page": nil, first + "/text": nil, second + "/busy": nil,
	})
	if err != nil {
		t.Fatal(err)
	}
	if asked.Load() != 2 || others.Load() != 3 {
		t.Errorf("%d and %d questions, want 2 and 3", asked.Load(), others.Load())
	}
	// The servers have ports of their own, in any order.
	ofFirst, ofSecond := sleeps{time.Second}, sleeps{7 * time.Second, time.Second, time.Minute, time.Second}
	if d := cmp.Diff(append(ofFirst, ofSecond...), waits); d != "" && cmp.Diff(append(ofSecond, ofFirst...), waits) != "" {
		t.Errorf("waits (-want +got)\n%s", d)
	}
}

func TestTheContextEndsIt(t *testing.T) {
	address, _ := server(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	checker := outer.Checker{Tries: 3, Sleep: func(context.Context, time.Duration) error {
		cancel(over)
		return context.Cause(ctx)
	}}
	if got, err := checker.Check(ctx, map[string][]string{address + "/broken": {"a.html"}}); !errors.Is(err, over) || got.Addresses != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := checker.Check(ctx, map[string][]string{address + "/page": {"a.html"}}); !errors.Is(err, over) {
		t.Errorf("a request in a context that is over: %v", err)
	}
}
