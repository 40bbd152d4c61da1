package fromgithub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/history/fromgithub"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// world is a GitHub stand-in with a clock of its own.
type world struct {
	t   *testing.T
	url string
	// fronted: something before the stand-in answers some calls.
	fronted bool

	mu    sync.Mutex
	at    time.Time
	slept []time.Duration
	said  []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, at: noon}
	server, err := githubsim.New(githubsim.Options{StateDir: t.TempDir(), Times: githubsim.QuickTimes, Now: w.now})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	w.url = "http://" + listener.Addr().String()
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// call makes a call of the stand-in.
func (w *world) call(want int, method, path, bearer string, body, into any) {
	w.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != want {
		w.t.Fatalf("%s %s: got %s", method, path, resp.Status)
	}
	if into != nil {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			w.t.Fatal(err)
		}
	}
}

// runner is one that takes jobs of a repository.
type runner struct {
	protocol.Registered
	session protocol.Session
}

func (w *world) runner(repository string) runner {
	w.t.Helper()
	var token struct{ Token string }
	w.call(201, "POST", "/repos/"+repository+"/actions/runners/registration-token", "t", nil, &token)
	r := runner{}
	w.call(201, "POST", protocol.PathRegister, token.Token, protocol.Register{URL: w.url + "/" + repository, Name: "runner", Labels: []string{"box"}}, &r.Registered)
	w.call(201, "POST", protocol.PathSession, r.Credential, nil, &r.session)
	return r
}

// ran starts a run of a repository whose one job waits and runs for some time.
func (w *world) ran(r runner, repository string, waits, runs time.Duration) {
	w.t.Helper()
	w.start(repository)
	w.advance(waits)
	var m protocol.Message
	w.call(200, "GET", protocol.PathMessages+"?session="+r.session.ID, r.Credential, nil, &m)
	var job protocol.Job
	w.call(200, "POST", fmt.Sprintf(protocol.PathAcquire, m.JobID), r.Credential, nil, &job)
	w.advance(runs)
	w.call(204, "POST", fmt.Sprintf(protocol.PathComplete, m.JobID), job.Token, protocol.Complete{Conclusion: "success"}, nil)
}

func (w *world) start(repository string) (runID int64) {
	w.t.Helper()
	var made struct{ ID int64 }
	w.call(201, "POST", "/_standin/runs", "", map[string]any{
		"repository": repository, "workflow": "on: push\njobs:\n  j: {runs-on: [self-hosted, box], steps: [{run: 'true'}]}\n",
	}, &made)
	return made.ID
}

// source reads what is there from the stand-in, with answers that are held against GitHub's own description.
func (w *world) source(of string, rows *fromgithub.Rows) *fromgithub.Source {
	w.t.Helper()
	transport := http.DefaultTransport
	if !w.fronted { // the front's answers are not whole
		transport = ranges{openapitest.Check(w.t, transport)}
	}
	c, err := fromgithub.NewClient(w.url, "t", transport)
	if err != nil {
		w.t.Fatal(err)
	}
	return &fromgithub.Source{
		Client: c, Of: of, Since: noon.Add(-time.Hour), Until: noon.Add(24 * time.Hour), Rows: rows, Now: w.now,
		Progress: func(what string) { w.said = append(w.said, what) },
		Sleep: func(ctx context.Context, d time.Duration) error {
			w.slept = append(w.slept, d)
			w.advance(d)
			return ctx.Err()
		},
	}
}

// ranges hides ranges of times from what holds calls against GitHub's description, by which created is one time. GitHub's documentation has
// the syntax of its search there.
type ranges struct{ checked http.RoundTripper }

func (t ranges) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("created") {
		return http.DefaultTransport.RoundTrip(r)
	}
	return t.checked.RoundTrip(r)
}

func (w *world) read(s *fromgithub.Source) history.History {
	w.t.Helper()
	if err := s.Read(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	h, err := s.Rows.History(time.Time{})
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// times are when the jobs of a history came, began and ended, after noon.
func times(h history.History) (all [][3]time.Duration) {
	for _, j := range h.Jobs {
		all = append(all, [3]time.Duration{j.Created.Sub(noon), j.Started.Sub(noon), j.Completed.Sub(noon)})
	}
	return all
}

// TestJobsOfARepository: those that ran have their times, one that was canceled had no runner, and one that waits is of a run that is not over.
func TestJobsOfARepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.runner("acme/app")
	w.ran(r, "acme/app", 20*time.Second, 5*time.Minute)
	w.advance(40 * time.Second)
	w.ran(r, "acme/app", 10*time.Second, time.Minute)
	w.call(202, "POST", fmt.Sprintf("/_standin/runs/%d/cancel", w.start("acme/app")), "", nil, nil)
	w.start("acme/app")
	h := w.read(w.source("acme/app", fromgithub.InMemory()))
	want := [][3]time.Duration{
		{0, 20 * time.Second, 320 * time.Second},
		{6 * time.Minute, 370 * time.Second, 430 * time.Second},
	}
	if diff := cmp.Diff(want, times(h)); diff != "" || h.Unstarted != 1 || h.Open != 0 {
		t.Errorf("%d without a runner, %d open; times (-want +got):\n%s", h.Unstarted, h.Open, diff)
	}
	if j := h.Jobs[0]; j.Repository != "acme/app" || strings.Join(j.Labels, " ") != "self-hosted box" || j.ID == 0 || j.RunID == "" {
		t.Errorf("%+v", j)
	}
}

// TestItGoesOn: what was saved is not read again, except the run that was saved last, whose rows may be cut off.
func TestItGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.runner("acme/app")
	for range 3 {
		w.ran(r, "acme/app", time.Second, time.Minute)
	}
	path := filepath.Join(t.TempDir(), "jobs.csv")
	all := w.saved(path)
	if len(all.Jobs) != 3 {
		t.Fatalf("%d jobs", len(all.Jobs))
	}
	before := w.calls()
	if diff := cmp.Diff(all, w.saved(path)); diff != "" {
		t.Errorf("read again (-before +after):\n%s", diff)
	}
	if n := w.calls() - before; n != 1 {
		t.Errorf("%d runs were read again, want the last one", n)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, w.saved(path)); diff != "" {
		t.Errorf("read after rows were cut off (-before +after):\n%s", diff)
	}
	if err := os.WriteFile(path, text[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, w.saved(path)); diff != "" {
		t.Errorf("read after the heading was cut off (-before +after):\n%s", diff)
	}
}

// TestAFileOfSomethingElse is not taken for saved jobs, and stays as it is.
func TestAFileOfSomethingElse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"not,jobs\n", "a token on one line without an end", "completed_at,started_at,created_at,repository,labels,run_id,job_id\n",
		"repository,created_at,started_at,completed_at\nacme/app,,,\n",
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := fromgithub.OpenRows(path, "acme"); err == nil || !strings.Contains(err.Error(), "something else") {
			t.Errorf("%q was taken: %v", text, err)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != text {
			t.Errorf("%q was changed to %q, %v", text, left, err)
		}
	}
}

// TestAFileOfOthers: a file with jobs of another owner or repository stays as it is, and one of an owner has all of its repositories.
func TestAFileOfOthers(t *testing.T) {
	t.Parallel()
	const rows = "repository,labels,created_at,started_at,completed_at,run_id,job_id\nAcme/App,,,,,7,1\nacme/lib,,,,,8,2\n"
	for of, wrong := range map[string]string{
		"acme": "", "ACME": "", "acme/app": "has jobs of acme/lib, and these are of acme/app", "other": "has jobs of acme/lib, and these are of other",
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := fromgithub.OpenRows(path, of)
		if err == nil {
			err = opened.Close()
		}
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("of %s: the error is %v, want %q", of, err, wrong)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != rows {
			t.Errorf("of %s: the file is %q, %v", of, left, err)
		}
	}
}

// TestALaterSince: a file keeps what an earlier reading has read, and the history has what was created since the day that is asked for.
func TestALaterSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.runner("acme/app")
	w.ran(r, "acme/app", time.Second, time.Minute)
	path := filepath.Join(t.TempDir(), "jobs.csv")
	w.saved(path)
	w.advance(time.Hour)
	later := w.now()
	w.ran(r, "acme/app", time.Second, time.Minute)
	if h := w.saved(path); len(h.Jobs) != 2 {
		t.Errorf("%d jobs, want both", len(h.Jobs))
	}
	rows, err := fromgithub.OpenRows(path, "acme/app")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	if h, err := rows.History(later); err != nil || len(h.Jobs) != 1 || h.Jobs[0].Created.Before(later) {
		t.Errorf("%+v, %v; want the later job", h.Jobs, err)
	}
}

// TestErrorsAreForPeople: an error of GitHub's has its status and what it says, without the address, and progress says what is tried again.
func TestErrorsAreForPeople(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		http.StatusUnauthorized: "GitHub answers 401 Unauthorized: Bad credentials", http.StatusBadGateway: "GitHub answers 502 Bad Gateway: Bad credentials",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, `{"message": "Bad credentials"}`)
		}))
		defer server.Close()
		c, err := fromgithub.NewClient(server.URL, "t", nil)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		s := &fromgithub.Source{
			Client: c, Of: "acme", Since: noon, Until: noon, Rows: fromgithub.InMemory(), Now: func() time.Time { return noon },
			Progress: func(what string) { said = append(said, what) }, Sleep: func(context.Context, time.Duration) error { return nil },
		}
		err = s.Read(t.Context())
		var refused *fromgithub.RefusedError
		if !errors.As(err, &refused) || refused.Status != status || err.Error() != "list the repositories of acme: "+want {
			t.Errorf("the error is %v, want %s", err, want)
		}
		if tries := strings.Count(strings.Join(said, "\n"), "trying again in "); (tries > 0) != (status >= 500) || said[0] != "listing the repositories of acme" {
			t.Errorf("it said %q", said)
		}
	}
}

// TestTwoReadings that keep their jobs in one file at once do not write over each other.
func TestTwoReadings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "jobs.csv")
	var both [2]*fromgithub.Source
	for i, of := range []string{"acme/app", "acme/lib"} {
		w.ran(w.runner(of), of, time.Second, time.Minute)
		rows, err := fromgithub.OpenRows(path, of)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		both[i] = w.source(of, rows)
	}
	w.read(both[0])
	if h := w.read(both[1]); len(h.Jobs) != 2 {
		t.Errorf("%d jobs, want those of both", len(h.Jobs))
	}
}

// saved reads the jobs of acme/app, with rows in a file.
func (w *world) saved(path string) history.History {
	w.t.Helper()
	rows, err := fromgithub.OpenRows(path, "acme/app")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	return w.read(w.source("acme/app", rows))
}

const jobsRoute = "GET /repos/{owner}/{repo}/actions/runs/{run_id}/jobs"

// calls counts how often the jobs of a run were listed.
func (w *world) calls() int {
	w.t.Helper()
	var got struct {
		Calls []struct {
			Method, Route string
			Count         int
		}
	}
	w.call(200, "GET", "/_standin/calls", "", nil, &got)
	for _, c := range got.Calls {
		if c.Method+" "+c.Route == jobsRoute {
			return c.Count
		}
	}
	return 0
}

// TestLimits: a call that GitHub puts off is made again after as long as it says, and one that fails a little later. What it refuses is an error.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ran(w.runner("acme/app"), "acme/app", time.Second, time.Minute)
	fault := func(status, count, after int) {
		w.call(204, "POST", "/_standin/faults", "", map[string]any{"route": jobsRoute, "status": status, "count": count, "retry_after": after}, nil)
	}
	fault(429, 1, 17)
	if h := w.read(w.source("acme/app", fromgithub.InMemory())); len(h.Jobs) != 1 {
		t.Errorf("%d jobs", len(h.Jobs))
	}
	if diff := cmp.Diff([]time.Duration{17 * time.Second}, w.slept); diff != "" {
		t.Errorf("it waited (-want +got):\n%s", diff)
	}
	w.slept = nil
	fault(502, 2, 0)
	if h := w.read(w.source("acme/app", fromgithub.InMemory())); len(h.Jobs) != 1 {
		t.Errorf("%d jobs", len(h.Jobs))
	}
	if diff := cmp.Diff([]time.Duration{2 * time.Second, 4 * time.Second}, w.slept); diff != "" {
		t.Errorf("it waited (-want +got):\n%s", diff)
	}
	fault(401, 1, 0)
	if err := w.source("acme/app", fromgithub.InMemory()).Read(t.Context()); err == nil || !strings.Contains(err.Error(), "read the runs of acme/app: read the jobs of run") {
		t.Errorf("refused: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.source("acme/app", fromgithub.InMemory()).Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// inFront answers some calls, and hands the others to the stand-in.
func (w *world) inFront(answer func(w http.ResponseWriter, r *http.Request) bool) {
	w.t.Helper()
	behind, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !answer(rw, r) {
			proxy.ServeHTTP(rw, r)
		}
	}))
	w.t.Cleanup(front.Close)
	w.url, w.fronted = front.URL, true
}

// TestRepositoriesOfAnOwner, which the stand-in does not list: of an organization, and of a user, which is none. One without Actions is passed over.
func TestRepositoriesOfAnOwner(t *testing.T) {
	t.Parallel()
	for owner, path := range map[string]string{"acme": "/orgs/acme/repos", "ann": "/users/ann/repos"} {
		t.Run(owner, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, name := range []string{"b", "a"} {
				w.ran(w.runner(owner+"/"+name), owner+"/"+name, time.Second, time.Minute)
			}
			w.inFront(func(rw http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.URL.Path == path:
					fmt.Fprintf(rw, `[{"full_name":"%[1]s/b"},{"full_name":"%[1]s/a"},{"full_name":"%[1]s/none"}]`, owner)
				case strings.HasSuffix(r.URL.Path, "/repos"), strings.Contains(r.URL.Path, "/none/"):
					http.NotFound(rw, r)
				default:
					return false
				}
				return true
			})
			s := w.source(owner, fromgithub.InMemory())
			h := w.read(s)
			if len(h.Jobs) != 2 || h.Jobs[0].Repository != owner+"/b" || h.Jobs[1].Repository != owner+"/a" {
				t.Errorf("%+v", h.Jobs)
			}
			if said := strings.Join(w.said, "\n"); !strings.Contains(said, owner+"/none: it has no Actions") {
				t.Errorf("it said:\n%s", said)
			}
		})
	}
}

// TestManyRuns: a range of times with as many runs as GitHub lists may have more, and is read in halves.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.runner("acme/app")
	for range 4 {
		w.ran(r, "acme/app", time.Second, time.Minute)
	}
	asked := []string(nil)
	w.inFront(func(rw http.ResponseWriter, r *http.Request) bool {
		created := r.URL.Query().Get("created")
		if created == "" {
			return false
		}
		asked = append(asked, created)
		if len(asked) > 1 {
			return false
		}
		fmt.Fprint(rw, `{"total_count":1000,"workflow_runs":[]}`)
		return true
	})
	s := w.source("acme/app", fromgithub.InMemory())
	s.Since, s.Until = noon, noon.Add(4*time.Minute)
	if h := w.read(s); len(h.Jobs) != 4 {
		t.Errorf("%d jobs", len(h.Jobs))
	}
	want := []string{
		"2026-11-02T12:00:00Z..2026-11-02T12:04:00Z", "2026-11-02T12:00:00Z..2026-11-02T12:02:00Z", "2026-11-02T12:02:01Z..2026-11-02T12:04:00Z",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("ranges (-want +got):\n%s", diff)
	}
}

// TestTheLastCallsAreLeft to others with the same token, and the reading goes on in the next hour.
func TestTheLastCallsAreLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ran(w.runner("acme/app"), "acme/app", time.Second, time.Minute)
	reset := w.now().Add(10 * time.Minute)
	w.inFront(func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/actions/runs") {
			return false
		}
		rw.Header().Set("X-RateLimit-Limit", "5000")
		rw.Header().Set("X-RateLimit-Remaining", "200")
		rw.Header().Set("X-RateLimit-Reset", fmt.Sprint(reset.Unix()))
		fmt.Fprint(rw, `{"total_count":0,"workflow_runs":[]}`)
		return true
	})
	s := w.source("acme/app", fromgithub.InMemory())
	if err := s.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Duration{10*time.Minute + 5*time.Second}, w.slept); diff != "" {
		t.Errorf("it waited (-want +got):\n%s", diff)
	}
}

// answered has all calls to paths that end so answered by one function, and reads acme/app.
func answered(t *testing.T, end string, answer func(rw http.ResponseWriter, call int)) (*world, history.History, error) {
	t.Helper()
	w := newWorld(t)
	r := w.runner("acme/app")
	for range 2 {
		w.ran(r, "acme/app", time.Second, time.Minute)
	}
	calls := 0
	w.inFront(func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, end) {
			return false
		}
		if calls++; calls > 1 && end == "/jobs" {
			return false
		}
		answer(rw, calls)
		return true
	})
	s := w.source("acme/app", fromgithub.InMemory())
	if err := s.Read(t.Context()); err != nil {
		return w, history.History{}, err
	}
	h, err := s.Rows.History(time.Time{})
	return w, h, err
}

// TestTheTokenStaysWithItsHost: an API that sends a call elsewhere is not followed, nor asked again.
func TestTheTokenStaysWithItsHost(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a call with %q came", r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	for to, want := range map[string]string{elsewhere.URL + "/x": `to another host, "127.0.0.1`, "/repos/acme/app/actions/runs": "in a circle"} {
		w, _, err := answered(t, "/actions/runs", func(rw http.ResponseWriter, _ int) {
			rw.Header().Set("Location", to)
			rw.WriteHeader(http.StatusMovedPermanently)
		})
		if err == nil || !strings.Contains(err.Error(), want) || len(w.slept) > 0 {
			t.Errorf("%v, after waits of %v", err, w.slept)
		}
	}
}

// TestARunThatIsGone was deleted since it was listed. The others are read.
func TestARunThatIsGone(t *testing.T) {
	t.Parallel()
	w, h, err := answered(t, "/jobs", func(rw http.ResponseWriter, _ int) { rw.WriteHeader(http.StatusNotFound) })
	if said := strings.Join(w.said, "\n"); err != nil || len(h.Jobs) != 1 || !strings.Contains(said, "is not there any more") {
		t.Errorf("%d jobs, %v; it said:\n%s", len(h.Jobs), err, said)
	}
}

// TestARepositoryThatIsNotShown is passed over, also if GitHub says 403.
func TestARepositoryThatIsNotShown(t *testing.T) {
	t.Parallel()
	w, h, err := answered(t, "/actions/runs", func(rw http.ResponseWriter, _ int) {
		rw.WriteHeader(http.StatusForbidden)
		fmt.Fprint(rw, `{"message":"Resource not accessible by personal access token"}`)
	})
	if said := strings.Join(w.said, "\n"); err == nil && len(h.Jobs) > 0 || !strings.Contains(said, "or the token may not read them") {
		t.Errorf("%d jobs, %v; it said:\n%s", len(h.Jobs), err, said)
	}
}

// TestWaitsHaveBounds, whatever GitHub says: no wait is none, and none is longer than the hour by which GitHub counts.
func TestWaitsHaveBounds(t *testing.T) {
	t.Parallel()
	for after, want := range map[string]time.Duration{"-5": time.Minute, "0": time.Minute, "soon": time.Minute, "7": 7 * time.Second, "99999999999999999999": time.Hour, "9999999999": time.Hour} {
		for _, status := range []int{http.StatusForbidden, http.StatusTooManyRequests} {
			w, h, err := answered(t, "/jobs", func(rw http.ResponseWriter, _ int) {
				rw.Header().Set("Retry-After", after)
				rw.WriteHeader(status)
			})
			if diff := cmp.Diff([]time.Duration{want}, w.slept); diff != "" || err != nil || len(h.Jobs) != 2 {
				t.Errorf("%d and %s: %d jobs, %v; waits (-want +got):\n%s", status, after, len(h.Jobs), err, diff)
			}
		}
	}
	w, _, err := answered(t, "/jobs", func(rw http.ResponseWriter, _ int) {
		rw.Header().Set("Retry-After", "-5")
		rw.WriteHeader(http.StatusForbidden)
		fmt.Fprint(rw, `{"documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`)
	})
	if diff := cmp.Diff([]time.Duration{time.Minute}, w.slept); diff != "" || err != nil {
		t.Errorf("%v; waits (-want +got):\n%s", err, diff)
	}
	w, _, err = answered(t, "/jobs", func(rw http.ResponseWriter, _ int) {
		rw.Header().Set("X-RateLimit-Limit", "5000")
		rw.Header().Set("X-RateLimit-Remaining", "1")
		rw.Header().Set("X-RateLimit-Reset", "99999999999")
		fmt.Fprint(rw, `{"total_count":0,"jobs":[]}`)
	})
	if diff := cmp.Diff([]time.Duration{time.Hour + 5*time.Second}, w.slept); diff != "" || err != nil {
		t.Errorf("%v; waits (-want +got):\n%s", err, diff)
	}
}

// TestPagesInACircle end.
func TestPagesInACircle(t *testing.T) {
	t.Parallel()
	_, _, err := answered(t, "/actions/runs", func(rw http.ResponseWriter, _ int) {
		rw.Header().Set("Link", `<https://api.github.com/x?page=1>; rel="next"`)
		fmt.Fprint(rw, `{"total_count":1,"workflow_runs":[]}`)
	})
	if err == nil || !strings.Contains(err.Error(), "page 1 is said to follow page 1") {
		t.Error(err)
	}
}

// TestANameThatIsNone: what a terminal would obey does not get there.
func TestANameThatIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inFront(func(rw http.ResponseWriter, _ *http.Request) bool {
		fmt.Fprint(rw, `[{"full_name":"acme/\u001b[2J"}]`)
		return true
	})
	if err := w.source("acme", fromgithub.InMemory()).Read(t.Context()); err == nil || !strings.Contains(err.Error(), `"acme/\x1b[2J" is not owner/name`) {
		t.Error(err)
	}
}

// TestURLs: a token goes over https, or stays on this machine. Errors of calls have the URL, so no password is in it, and none in the error here.
func TestURLs(t *testing.T) {
	t.Parallel()
	for raw, good := range map[string]bool{
		"": true, "https://github.example/api/v3": true, "http://127.0.0.1:1": true, "http://github.example": false, "https://a b": false,
		"https://user:secret@github.example/api/v3": false, "http://secret@127.0.0.1:1": false,
	} {
		if _, err := fromgithub.NewClient(raw, "secret-token", nil); (err == nil) != good || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", raw, err)
		}
	}
}
