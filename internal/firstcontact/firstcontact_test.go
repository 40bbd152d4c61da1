package firstcontact_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/firstcontact"
	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
	"github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// secret is the token of the tests.
const secret = "a-token-that-is-secret"

// quick are times for a stand-in on this machine. A wait for something that comes is long, for a machine that has much else to do.
var quick = firstcontact.Times{
	Poll: 10 * time.Millisecond, Patience: 2 * time.Minute, Quiet: 300 * time.Millisecond, Idle: 2 * time.Minute, Flags: 2 * time.Minute,
	TokenLife: 10 * time.Millisecond, Clean: 2 * time.Minute,
}

// unkind is a stand-in that has every lag of GitHub's, in a time that tests can wait for.
var unkind = githubsim.Times{
	Offline: 500 * time.Millisecond, BusyLag: 200 * time.Millisecond, Session: 500 * time.Millisecond, IdleJIT: 3 * time.Second,
	ConflictPause: 100 * time.Millisecond, ConflictLimit: time.Minute,
}

// world is a stand-in and the runners for it.
type world struct {
	*testing.T
	url                  string
	current, old, refuse string // directories of runners
	transport            http.RoundTripper
	ahead                atomic.Int64 // by how much the clock of the stand-in is ahead
	progress             progress
}

// progress keeps the lines, and calls a function for each.
type progress struct {
	mu   sync.Mutex
	text bytes.Buffer
	on   func(line string)
}

func (p *progress) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on != nil {
		p.on(string(line))
	}
	return p.text.Write(line)
}

func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func TestMain(m *testing.M) {
	code := m.Run()
	testrun.Runner.Remove()
	os.Exit(code)
}

func newWorld(t *testing.T, change ...func(*githubsim.Options)) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	w.check(err)
	w.url = "http://" + ln.Addr().String()
	options := githubsim.Options{StateDir: filepath.Join(t.TempDir(), "github"), Times: unkind, Now: func() time.Time {
		return time.Now().Add(time.Duration(w.ahead.Load()))
	}}
	for _, f := range change {
		f(&options)
	}
	s, err := githubsim.New(options)
	w.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	transport := &http.Transport{}
	w.transport = openapitest.Check(t, transport)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	w.layOut()
	return w
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// layOut makes the runners, and tells the stand-in which versions it is to take.
func (w *world) layOut() {
	w.Helper()
	binary := filepath.Join(testrun.Runner.Dir(w), "standin-runner")
	dir := w.TempDir()
	w.current, w.old, w.refuse = filepath.Join(dir, "current"), filepath.Join(dir, "old"), filepath.Join(dir, "refused")
	for path, version := range map[string]string{w.current: runner.Version, w.old: "2.320.0", w.refuse: "2.290.0"} {
		w.check(runner.LayOut(path, binary))
		w.check(runner.SetVersion(path, version))
	}
	w.call("PUT", "/_standin/runner-versions", map[string]string{"minimum": "2.300.0", "latest": runner.Version}, nil)
}

// call makes a call of the stand-in's own.
func (w *world) call(method, path string, body, into any) {
	w.Helper()
	text, err := json.Marshal(body)
	w.check(err)
	r, err := http.NewRequest(method, w.url+path, bytes.NewReader(text))
	w.check(err)
	r.Header.Set("Authorization", "Bearer "+secret)
	resp, err := (&http.Client{Transport: w.transport}).Do(r)
	w.check(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	w.check(err)
	if resp.StatusCode >= 300 {
		w.Fatalf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if into != nil {
		w.check(json.Unmarshal(answer, into))
	}
}

// options are those of a run with all runners.
func (w *world) options(only ...string) firstcontact.Options {
	return firstcontact.Options{
		Repository: "acme/app", Token: secret, APIURL: w.url + "/api/v3", Runner: w.current, OldRunner: w.old, RefusedRunner: w.refuse,
		WorkDir: w.TempDir(), Slow: true, Only: only, Times: quick, Progress: &w.progress, Transport: w.transport,
	}
}

// verdicts are those of a report, by the assumption.
func verdicts(r firstcontact.Report) map[string]findings.Verdict {
	out := map[string]findings.Verdict{}
	for _, f := range r.Findings {
		out[f.Name] = f.Verdict
	}
	return out
}

// clean checks that a run has left nothing: no registration, no run, no branch, no process that works for it and no file.
func (w *world) clean(o firstcontact.Options) {
	w.Helper()
	var runners, runs struct {
		Count int `json:"total_count"`
	}
	w.call("GET", "/repos/acme/app/actions/runners", nil, &runners)
	w.call("GET", "/repos/acme/app/actions/runs", nil, &runs)
	var calls struct {
		Calls []struct {
			Method, Route string
			Count         int
		}
	}
	w.call("GET", "/_standin/calls", nil, &calls)
	branches := 0
	for _, c := range calls.Calls {
		switch c.Method + " " + c.Route {
		case "POST /repos/{owner}/{repo}/git/refs":
			branches += c.Count
		case "DELETE /repos/{owner}/{repo}/git/refs/{ref...}":
			branches -= c.Count
		}
	}
	files, err := os.ReadDir(o.WorkDir)
	w.check(err)
	if runners.Count+runs.Count+branches+len(files) > 0 {
		w.Errorf("left over: %d runners, %d runs, %d branches, %v", runners.Count, runs.Count, branches, files)
	}
	for _, cmdline := range commandLines(w.T) {
		if strings.Contains(cmdline, o.WorkDir) {
			w.Errorf("runs still: %s", cmdline)
		}
	}
}

func commandLines(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil { // else it has ended
			list = append(list, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return list
}

// expireTokens moves the clock of the stand-in once the check of tokens has one.
func (w *world) expireTokens() {
	next, checking := w.transport, atomic.Bool{}
	w.progress.on = func(line string) {
		checking.Store(strings.Contains(line, "s  token "))
	}
	w.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if checking.Load() && strings.HasSuffix(r.URL.Path, "/remove-token") {
			w.ahead.Store(int64(2 * githubsim.TokenLife))
		}
		return resp, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestStandIn runs everything against the stand-in, which does what Remuda assumes about GitHub.
func TestStandIn(t *testing.T) {
	w := newWorld(t)
	w.expireTokens()
	o := w.options()
	report, err := firstcontact.Run(t.Context(), o)
	if err != nil {
		t.Errorf("%v\n%s", err, w.progress.String())
	}
	want := map[string]findings.Verdict{}
	for _, list := range firstcontact.Assumptions() {
		for _, a := range list {
			want[a.Name] = findings.Confirmed
		}
	}
	if d := cmp.Diff(want, verdicts(report)); d != "" {
		t.Errorf("%s\n%s", d, w.progress.String())
	}
	var text, object bytes.Buffer
	w.check(report.Text(&text))
	w.check(findings.JSON(&object, report))
	if said := text.String() + object.String() + w.progress.String(); strings.Contains(said, secret) {
		t.Error("the token is in the output")
	}
	if !strings.Contains(text.String(), fmt.Sprintf("%d confirmed, 0 refuted, 0 undecided", len(want))) {
		t.Error(text.String())
	}
	w.clean(o)
}

// answer is an answer in the place of the stand-in's.
func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// TestRefuted has GitHub do otherwise than assumed.
func TestRefuted(t *testing.T) {
	is := func(r *http.Request, method, path string) bool {
		return r.Method == method && strings.Contains(r.URL.Path, path)
	}
	for name, c := range map[string]struct {
		check, refuted string
		github         func(*githubsim.Options)
		options        func(*firstcontact.Options)
		// instead answers a call in the place of the stand-in, the n-th of its kind. nil leaves it to that.
		instead func(r *http.Request, n int) *http.Response
		kind    func(*http.Request) bool
	}{
		"a label is not taken away": {
			check: "labels", refuted: "label-removed",
			kind: func(r *http.Request) bool { return is(r, "PUT", "/labels") },
			instead: func(r *http.Request, n int) *http.Response {
				if n != 2 {
					return nil
				}
				return answer(r, 200, `{"total_count": 0, "labels": []}`)
			},
		},
		"a runner that is gone is deleted again": {
			check: "deletion", refuted: "delete-gone",
			kind: func(r *http.Request) bool { return is(r, "DELETE", "/actions/runners/") },
			instead: func(r *http.Request, n int) *http.Response {
				if n != 2 {
					return nil
				}
				return answer(r, 204, "")
			},
		},
		"a runner with a job cannot be found": {
			check: "deletion", refuted: "delete-busy",
			kind: func(r *http.Request) bool { return is(r, "DELETE", "/actions/runners/") },
			instead: func(r *http.Request, n int) *http.Response {
				if n != 4 {
					return nil
				}
				return answer(r, 404, `{"message": "Not Found"}`)
			},
		},
		"an idle runner stays": {
			check: "idle", refuted: "idle-jit-removed",
			github:  func(o *githubsim.Options) { o.Times.IdleJIT = -1 },
			options: func(o *firstcontact.Options) { o.Times.Idle = 300 * time.Millisecond },
		},
		"an older runner is not told to update itself": {
			check: "update", refuted: "update-without",
			options: func(o *firstcontact.Options) { o.OldRunner = o.Runner },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *githubsim.Options) {
				if c.github != nil {
					c.github(o)
				}
			})
			o := w.options(c.check)
			if c.options != nil {
				c.options(&o)
			}
			var n atomic.Int64
			o.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				if c.kind != nil && c.kind(r) {
					if resp := c.instead(r, int(n.Add(1))); resp != nil {
						return resp, nil
					}
				}
				return w.transport.RoundTrip(r)
			})
			report, err := firstcontact.Run(t.Context(), o)
			w.check(err)
			for name, verdict := range verdicts(report) {
				if (verdict == findings.Refuted) != (name == c.refuted) {
					t.Errorf("%s is %s", name, verdict)
				}
			}
			if t.Failed() {
				t.Log(w.progress.String())
			}
			w.clean(o)
		})
	}
}

// TestInterrupt ends a run while a job runs.
func TestInterrupt(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	o := w.options("deletion", "signals")
	o.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := w.transport.RoundTrip(r)
		if err == nil && resp.StatusCode == http.StatusUnprocessableEntity {
			cancel(errors.New("it was interrupted"))
		}
		return resp, err
	})
	report, err := firstcontact.Run(ctx, o)
	if err == nil || err.Error() != "it was interrupted" { // and nothing is left
		t.Errorf("%v\n%s", err, w.progress.String())
	}
	got := verdicts(report)
	if got["delete-gone"] != findings.Confirmed || got["delete-busy"] != findings.Undecided || got["sigint"] != findings.Undecided {
		t.Errorf("%v", got)
	}
	w.clean(o)
}

// TestOptionsAreChecked has what is wrong found before a call is made.
func TestOptionsAreChecked(t *testing.T) {
	configured := t.TempDir()
	for _, name := range []string{"bin/Runner.Listener", ".runner"} {
		if err := os.MkdirAll(filepath.Join(configured, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(configured, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for want, o := range map[string]firstcontact.Options{
		"form OWNER/NAME":    {Repository: "acme", Token: "t"},
		"token is empty":     {Repository: "acme/app"},
		`no check "labls"`:   {Repository: "acme/app", Token: "t", Only: []string{"labls"}},
		"not an unpacked":    {Repository: "acme/app", Token: "t", Runner: t.TempDir()},
		"is configured":      {Repository: "acme/app", Token: "t", OldRunner: configured},
		"make a directory: ": {Repository: "acme/app", Token: "t", WorkDir: "/nonexistent"},
	} {
		if _, err := firstcontact.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestPlacesExist checks that what an assumption says relies on it is there.
func TestPlacesExist(t *testing.T) {
	seen := map[string]bool{}
	for _, list := range firstcontact.Assumptions() {
		for _, a := range list {
			if seen[a.Name] {
				t.Errorf("there are two assumptions %s", a.Name)
			}
			seen[a.Name] = true
			for _, place := range strings.Split(a.ReliedOn, "; ") {
				path, _, _ := strings.Cut(place, ":")
				if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
					t.Errorf("%s: %v", a.Name, err)
				}
			}
		}
	}
}

// TestPage checks that docs/first-contact.md has every check and every assumption.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/first-contact.md")
	if err != nil {
		t.Fatal(err)
	}
	for check, list := range firstcontact.Assumptions() {
		if !bytes.Contains(page, []byte("| `"+check+"` |")) {
			t.Errorf("the page has no check %s", check)
		}
		for _, a := range list {
			if !bytes.Contains(page, []byte("`"+a.Name+"`")) {
				t.Errorf("the page has no assumption %s", a.Name)
			}
		}
	}
}
