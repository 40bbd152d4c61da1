package github_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// waitOf is the wait that an error asks for; -1: none.
func waitOf(err error) time.Duration {
	var u *lifecycle.UnavailableError
	if errors.As(err, &u) {
		return u.RetryAfter
	}
	return -1
}

// While little is left of the limit, only registrations go on, until nothing is.
func TestRegistrationsGoBeforeHousekeeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a", "b", "c", "d")
		f.limits = map[string]*fakeLimit{"token": {100, 11}}
		f.runs = []map[string]any{{"id": 1}}
		c := newClient(t, github.Config{Transport: direct{f}})
		jit := func(name string) error {
			_, _, err := c.JIT(t.Context(), "acme/app", name, []string{"x"})
			return err
		}
		if err := jit("1"); err != nil {
			t.Fatal(err) // 10 of 100 are left: not yet below a tenth
		}
		list(t, c)
		f.callsOf()
		housekeeping := map[string]func() error{
			"list":     func() error { _, err := c.Runners(t.Context(), "acme/app", lifecycle.PageOf{}); return err },
			"find":     func() error { _, err := c.FindRunner(t.Context(), "acme/app", "a"); return err },
			"job":      func() error { _, err := c.WorkflowJob(t.Context(), "acme/app", 1); return err },
			"jobs":     func() error { _, err := c.QueuedJobs(t.Context(), "acme/app"); return err },
			"releases": func() error { _, err := c.RunnerReleases(t.Context()); return err },
		}
		for name, call := range housekeeping {
			if err := call(); waitOf(err) != time.Hour || !strings.Contains(err.Error(), "kept for registrations") {
				t.Errorf("%s: got %v, wait %s", name, err, waitOf(err))
			}
		}
		if n := f.count(); n != 0 {
			t.Errorf("%d calls were made", n)
		}
		for name, call := range map[string]func() error{
			"register":                  func() error { _, err := c.RegistrationToken(t.Context(), "acme/app"); return err },
			"remove":                    func() error { _, err := c.RemoveToken(t.Context(), "acme/app"); return err },
			"delete":                    func() error { return c.DeleteRunner(t.Context(), "acme/app", 1) },
			"labels":                    func() error { return c.SetLabels(t.Context(), "acme/app", 1, []string{"1"}) },
			"run":                       func() error { _, err := c.WorkflowRun(t.Context(), "acme/app", "1"); return err },
			"what a run was started by": func() error { _, err := c.RunSource(t.Context(), "acme/app", "1"); return err },
			"JIT":                       func() error { return jit("2") },
			"a branch": func() error {
				_, err := c.Branch(t.Context(), "acme/app", "gone", "1")
				if errors.Is(err, lifecycle.ErrNotFound) { // so it was asked for
					return nil
				}
				return err
			},
			"JIT of a name that is taken": func() error { return jit("c") },
		} {
			f.limits["token"].left = 9
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		f.limits["token"].left = 1
		if err := c.DeleteRunner(t.Context(), "acme/app", 3); err != nil {
			t.Error(err)
		}
		f.callsOf()
		if err := jit("3"); waitOf(err) != time.Hour || !strings.Contains(err.Error(), "used up") {
			t.Errorf("got %v", err)
		}
		if n := f.count(); n != 0 {
			t.Errorf("%d calls were made with nothing left", n)
		}
		time.Sleep(time.Hour)
		f.limits["token"].left = 100
		if err := jit("3"); err != nil {
			t.Error(err)
		}
		list(t, c)
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		header string
		body   string
		want   time.Duration
	}{
		"403":                  {403, "30", `{}`, 30 * time.Second},
		"429":                  {429, "30", `{}`, 30 * time.Second},
		"503":                  {503, "30", `{}`, 30 * time.Second},
		"for ever":             {403, "999999999999", `{}`, time.Hour},
		"429 without":          {429, "", `{}`, time.Minute},
		"secondary without":    {403, "", `{"message":"You have exceeded a secondary rate limit. Please wait"}`, time.Minute},
		"secondary, by a link": {403, "", `{"documentation_url":"https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`, time.Minute},
		"secondary, old link":  {403, "", `{"documentation_url":"https://developer.github.com/v3/#abuse-rate-limits"}`, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("a")
				f.limits = map[string]*fakeLimit{"token": {5000, 5000}}
				first := true
				f.before = func(w http.ResponseWriter, _ *http.Request) bool {
					defer func() { first = false }()
					if !first {
						return false
					}
					if test.header != "" {
						w.Header().Set("Retry-After", test.header)
					}
					// The primary limit's reset is no hint on the secondary's.
					w.Header().Set("X-RateLimit-Remaining", "4999")
					w.Header().Set("X-RateLimit-Reset", fmt.Sprint(nextHour().Unix()))
					answer(w, test.status, test.body)
					return true
				}
				c := newClient(t, github.Config{Transport: direct{f}})
				for _, after := range []time.Duration{0, time.Second, test.want - 2*time.Second} {
					time.Sleep(after)
					left := test.want
					if after > 0 {
						left -= time.Second
					}
					if after > time.Second {
						left = time.Second
					}
					if err := c.DeleteRunner(t.Context(), "acme/app", 1); waitOf(err) != left {
						t.Errorf("after %s: got %v, wait %s, want %s", after, err, waitOf(err), left)
					}
				}
				if n := f.count(); n != 1 {
					t.Errorf("%d calls went out during the rest, want the first alone", n)
				}
				time.Sleep(time.Second)
				if err := c.DeleteRunner(t.Context(), "acme/app", 1); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What is refused during a rest takes no turn from what comes after it.
func TestRefusedCallsTakeNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		resting := true
		f.before = func(w http.ResponseWriter, _ *http.Request) bool {
			if resting {
				w.Header().Set("Retry-After", "1")
				answer(w, http.StatusServiceUnavailable, "")
			}
			return resting
		}
		c := newClient(t, github.Config{Transport: direct{f}})
		for range 100 {
			if err := c.DeleteRunner(t.Context(), "acme/app", 1); waitOf(err) != time.Second {
				t.Fatalf("got %v", err)
			}
		}
		resting = false
		time.Sleep(time.Second)
		for range 10 {
			start := time.Now()
			if err := c.DeleteRunner(t.Context(), "acme/app", 1); err != nil || time.Since(start) != 0 {
				t.Errorf("after %s: %v", time.Since(start), err)
			}
		}
	})
}

// What has not changed costs nothing, whatever page it is on.
func TestUnchangedAnswersAreFree(t *testing.T) {
	f := newFake("a", "b", "c")
	f.limits = map[string]*fakeLimit{"token": {5000, 5000}}
	f.runs = []map[string]any{{"id": 7, "status": "queued", "run_attempt": 1}}
	f.releases = []map[string]any{{"tag_name": "v2.317.0"}}
	c := newClient(t, github.Config{Transport: direct{f}})
	ask := func() (all []any) {
		for page := (lifecycle.PageOf{Limit: 2}); ; {
			p, err := c.Runners(t.Context(), "acme/app", page)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p.Items)
			if page.After = p.Next; p.Next == "" {
				break
			}
		}
		run, err := c.WorkflowRun(t.Context(), "acme/app", "7")
		if err != nil {
			t.Fatal(err)
		}
		releases, err := c.RunnerReleases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return append(all, run, releases)
	}
	first := ask()
	if left := f.limits["token"].left; left != 4996 {
		t.Errorf("%d are left after 4 calls", left)
	}
	for range 3 {
		if d := cmp.Diff(first, ask()); d != "" {
			t.Error(d)
		}
	}
	if left := f.limits["token"].left; left != 4996 {
		t.Errorf("%d are left after 12 more, all unchanged", left)
	}
	f.runs[0]["status"], f.runs[0]["run_attempt"] = "in_progress", 2
	f.runners = f.runners[:2]
	changed := ask()
	if d := cmp.Diff(lifecycle.WorkflowRun{RunID: "7", RunAttempt: 2, Repository: "acme/app", Status: "in_progress"}, changed[1]); d != "" {
		t.Error(d)
	}
	if left := f.limits["token"].left; left != 4994 {
		t.Errorf("%d are left after two changes", left)
	}
}

// What is kept for conditional requests is bounded.
func TestAnswersAreNotKeptForEver(t *testing.T) {
	f := newFake()
	asked := map[string]bool{}
	filler := strings.Repeat("\n", 900<<10) // behind what is decoded, which for a text of that length takes seconds
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		asked[r.URL.Path] = r.Header.Get("If-None-Match") != ""
		if asked[r.URL.Path] {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
		w.Header().Set("ETag", `"1"`)
		body := fmt.Sprintf(`{"id": %s}`, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]) + filler
		if strings.HasSuffix(r.URL.Path, "/99") {
			body += filler + filler
		}
		answer(w, http.StatusOK, body)
		return true
	}
	c := newClient(t, github.Config{Transport: direct{f}})
	get := func(id int) bool {
		t.Helper()
		if _, err := c.WorkflowRun(t.Context(), "acme/app", fmt.Sprint(id)); err != nil {
			t.Fatal(err)
		}
		return asked[fmt.Sprintf("/api/v3/repos/acme/app/actions/runs/%d", id)]
	}
	for id := range 18 { // as many as there is room for
		get(id + 1)
	}
	get(1)
	get(19)
	if !get(19) || !get(1) || !get(3) {
		t.Error("an answer that was used lately is not kept")
	}
	if get(2) {
		t.Error("19 answers of 900 KiB are kept")
	}
	if get(99); get(99) {
		t.Error("an answer of 3 MiB is kept")
	}
}

// starts are the times at which calls reached GitHub.
type starts struct {
	direct
	mu *sync.Mutex
	at *[]time.Time
}

func (s starts) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		s.mu.Lock()
		*s.at = append(*s.at, time.Now())
		s.mu.Unlock()
	}
	return s.direct.RoundTrip(r)
}

// mostInAMinute is the largest number of times within any minute.
func mostInAMinute(at []time.Time) (most int) {
	slices.SortFunc(at, time.Time.Compare)
	for i := range at {
		n := 0
		for _, other := range at[i:] {
			if other.Sub(at[i]) < time.Minute {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// However many call at once, no minute has more than GitHub allows, and what is
// refused says when to try again.
func TestWritesKeepToGitHubsPace(t *testing.T) {
	register := func(c *github.Client, ctx context.Context, i int) error {
		_, _, err := c.JIT(ctx, "acme/app", fmt.Sprintf("r%d", i), []string{"x"})
		return err
	}
	for name, test := range map[string]struct {
		replicas, most int
		call           func(c *github.Client, ctx context.Context, i int) error
	}{
		"registrations":              {1, 166, register},
		"registrations, as one of 2": {2, 166 / 2, register},
		"registrations, as one of 5": {5, 166 / 5, register},
		"deletions": {1, 80, func(c *github.Client, ctx context.Context, i int) error {
			return c.DeleteRunner(ctx, "acme/app", int64(1000+i))
		}},
		"labels": {1, 140, func(c *github.Client, ctx context.Context, i int) error {
			return c.SetLabels(ctx, "acme/app", int64(1000+i), []string{"1"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Time
				c := newClient(t, github.Config{Transport: starts{direct{newFake()}, &sync.Mutex{}, &at}, Replicas: func() int { return test.replicas }})
				var all sync.WaitGroup
				for i := range 300 {
					all.Go(func() {
						for {
							err := test.call(c, t.Context(), i)
							if err == nil {
								return
							}
							wait := waitOf(err)
							if wait < time.Second || wait > 5*time.Minute*time.Duration(test.replicas) || !strings.Contains(err.Error(), "secondary rate limits") {
								t.Errorf("got %v, wait %s", err, wait)
								return
							}
							time.Sleep(wait)
						}
					})
				}
				start := time.Now()
				all.Wait()
				if most := mostInAMinute(at); len(at) != 300 || most > test.most || most < test.most*8/10 {
					t.Errorf("%d of %d calls within a minute, want at most %d and not far below", most, len(at), test.most)
				}
				t.Logf("300 %s took %s", name, time.Since(start))
			})
		})
	}
}

// Calls for labels come in bursts. If GitHub does not answer them, other calls go on.
func TestOtherCallsDoNotWaitForLabels(t *testing.T) {
	for _, replicas := range []int{1, 7} {
		otherCallsBesideLabels(t, replicas)
	}
}

func otherCallsBesideLabels(t *testing.T, replicas int) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, github.Config{Transport: mute{direct{newFake()}}, Replicas: func() int { return replicas }})
		ctx, cancel := context.WithCancel(t.Context())
		var labels sync.WaitGroup
		for i := range 100 {
			labels.Go(func() { _ = c.SetLabels(ctx, "acme/app", int64(i+1), []string{"1"}) })
		}
		synctest.Wait()
		began := time.Now()
		if _, _, err := c.JIT(ctx, "acme/app", "r", []string{"x"}); err != nil || time.Since(began) > time.Second {
			t.Errorf("%d replicas: a registration took %s, error %v", replicas, time.Since(began), err)
		}
		cancel()
		labels.Wait()
	})
}

// mute answers no call for labels.
type mute struct{ direct }

func (m mute) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return m.direct.RoundTrip(r)
}

// GitHub is down for ten minutes, in three ways: it is always unavailable, never
// hammered, and back within seconds.
func TestGitHubIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		start := time.Now()
		c := newClient(t, github.Config{Transport: failing{direct{f}, start}})
		minute := func() time.Duration { return time.Since(start) / time.Minute }
		var callers sync.WaitGroup
		refused := map[time.Duration]int{}
		var mu sync.Mutex
		for range 20 {
			callers.Go(func() {
				for minute() < 10 {
					err := c.DeleteRunner(t.Context(), "acme/app", 1)
					if minute() < 10 && (!errors.Is(err, lifecycle.ErrUnavailable) || errors.Is(err, lifecycle.ErrRefused)) {
						t.Errorf("minute %d: got %v", minute(), err)
					}
					mu.Lock()
					refused[minute()]++
					mu.Unlock()
					time.Sleep(500 * time.Millisecond)
				}
			})
		}
		callers.Wait()
		per := map[time.Duration]int{}
		for _, at := range f.times {
			per[at.Sub(start)/time.Minute]++
		}
		for m := range time.Duration(10) {
			if most := 60; per[m] > most || (m < 7 && per[m] == 0) {
				t.Errorf("minute %d: GitHub was called %d times, want some and at most %d (callers asked %d times)", m, per[m], most, refused[m])
			}
		}
		t.Logf("calls of 20 callers by minute: %v of %v", per, refused)
		time.Sleep(time.Minute) // the rest that it asked for last
		if err := c.DeleteRunner(t.Context(), "acme/app", 1); err != nil {
			t.Errorf("GitHub is back: %v", err)
		}
	})
}

// failing is GitHub down: it answers 500, then hangs, then asks for rest.
type failing struct {
	direct
	since time.Time
}

func (d failing) RoundTrip(r *http.Request) (*http.Response, error) {
	f := d.direct.Handler.(*fake)
	f.mu.Lock()
	f.times = append(f.times, time.Now())
	f.mu.Unlock()
	switch age := time.Since(d.since); {
	case age < 4*time.Minute:
		return direct{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, 500, "") })}.RoundTrip(r)
	case age < 7*time.Minute:
		return slow{d.direct, time.Hour}.RoundTrip(r)
	case age < 10*time.Minute:
		return direct{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "60")
			answer(w, 403, `{"message":"You have exceeded a secondary rate limit."}`)
		})}.RoundTrip(r)
	}
	return d.direct.RoundTrip(r)
}

// An impatient caller says nothing of GitHub's health.
func TestImpatientCallersDoNotMakeGitHubLookDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		c := newClient(t, github.Config{Transport: slow{direct{f}, time.Second}})
		for range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if _, err := c.Runners(ctx, "acme/app", lifecycle.PageOf{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			cancel()
		}
		list(t, c)
	})
}

// Answers overtake each other: within an hour the lowest answer counts,
// and an answer about the hour before does not.
func TestBudgetsBelieveTheNewestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		var left, reset, resource string
		f.before = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("X-RateLimit-Limit", "5000")
			w.Header().Set("X-RateLimit-Remaining", left)
			w.Header().Set("X-RateLimit-Reset", reset)
			w.Header().Set("X-RateLimit-Resource", resource)
			return false
		}
		c := newClient(t, github.Config{Transport: direct{f}})
		now := time.Now()
		for i, step := range []struct {
			left     string
			reset    time.Duration
			resource string
			want     int
		}{
			{"4000", time.Hour, "core", 4000}, {"4001", time.Hour, "core", 4000}, {"3999", time.Hour, "", 3999},
			{"1", 59 * time.Minute, "core", 3999}, {"2", time.Hour, "search", 3999},
			{"-1", time.Hour, "core", 3999}, {"x", time.Hour, "core", 3999},
			{"4990", 61 * time.Minute, "core", 4990},
		} {
			left, resource = step.left, step.resource
			reset = fmt.Sprint(now.Add(step.reset).Unix())
			list(t, c)
			got := c.Budgets()
			if i >= 4 { // searches have a budget of their own by now
				if len(got) != 2 || got[1].Credential != "token, search" || got[1].Remaining != 2 {
					t.Fatalf("after %+v: got %+v", step, got)
				}
				got = got[:1]
			}
			if len(got) != 1 || got[0].Remaining != step.want || got[0].Credential != "token" {
				t.Errorf("after %+v: got %+v", step, got)
			}
		}
	})
}

// Calls under way count, so that many at once do not all choose the same App.
func TestCallsUnderWayCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		apps := f.withApps(2)
		c := newClient(t, github.Config{Transport: slow{direct{f}, time.Second}, Apps: apps})
		list(t, c)
		f.callsOf()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { list(t, c) })
			synctest.Wait()
		}
		all.Wait()
		by := map[string]int{}
		for _, call := range f.callsOf() {
			if strings.HasSuffix(call, "GET /repos/acme/app/actions/runners") {
				by[call[:15]]++
			}
		}
		if d := cmp.Diff(map[string]int{"installation 11": 10, "installation 12": 10}, by); d != "" {
			t.Error(d)
		}
	})
}

// While GitHub is down one call at a time finds out whether it is back.
func TestOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		c := newClient(t, github.Config{Transport: slow{direct{f}, time.Hour}})
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() { _, _ = c.Runners(t.Context(), "acme/app", lifecycle.PageOf{}) })
		}
		all.Wait()
		time.Sleep(6 * time.Second)
		start := time.Now()
		probes := 0
		for range 20 {
			all.Go(func() {
				_, err := c.Runners(t.Context(), "acme/app", lifecycle.PageOf{})
				if !errors.Is(err, lifecycle.ErrUnavailable) {
					t.Errorf("got %v", err)
				}
				if time.Since(start) > 0 {
					probes++
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if probes != 1 {
			t.Errorf("%d of 20 calls went out, want one", probes)
		}
	})
}

// Registrations have a limit of their own. Once it is used up no call is made for them, and other calls go on.
func TestRegistrationsHaveABudgetOfTheirOwn(t *testing.T) {
	s := startStandin(t, func(o *githubsim.Options) { o.RateLimit, o.RegistrationLimit = 1000, 2 })
	counts := countedCalls{next: http.DefaultTransport}
	c := newClient(t, github.Config{URL: s.url, Transport: &counts})
	jit := func(name string) error {
		_, _, err := c.JIT(t.Context(), repository, name, []string{"x"})
		return err
	}
	for _, name := range []string{"a", "b"} {
		if err := jit(name); err != nil {
			t.Fatal(err)
		}
	}
	before := counts.made.Load()
	for _, name := range []string{"c", "d"} {
		if err := jit(name); waitOf(err) < 59*time.Minute || !strings.Contains(err.Error(), "used up") {
			t.Errorf("runner %s: got %v, wait %s", name, err, waitOf(err))
		}
	}
	if n := counts.made.Load() - before; n != 0 {
		t.Errorf("%d calls were made with no registrations left", n)
	}
	if _, err := c.Runners(t.Context(), repository, lifecycle.PageOf{}); err != nil {
		t.Error(err)
	}
	if _, err := c.RegistrationToken(t.Context(), repository); err != nil {
		t.Error(err)
	}
	got := map[string]int{}
	for _, b := range c.Budgets() {
		got[b.Credential] = b.Remaining
	}
	if d := cmp.Diff(map[string]int{"token": 998, "token, actions_runner_registration": 0}, got); d != "" {
		t.Error(d)
	}
}

// What is left of the ordinary calls holds no registration up.
func TestRegistrationsGoOnWithoutOtherCalls(t *testing.T) {
	s := startStandin(t, func(o *githubsim.Options) { o.RateLimit, o.RegistrationLimit = 1, 10 })
	c := newClient(t, github.Config{URL: s.url})
	if _, err := c.Runners(t.Context(), repository, lifecycle.PageOf{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RegistrationToken(t.Context(), repository); waitOf(err) < 59*time.Minute {
		t.Errorf("a token with no calls left: got %v", err)
	}
	for _, name := range []string{"a", "b"} {
		if _, _, err := c.JIT(t.Context(), repository, name, []string{"x"}); err != nil {
			t.Errorf("runner %s: %v", name, err)
		}
	}
}

// Of several Apps the one with the most registrations left registers.
func TestTheAppWithTheMostRegistrationsLeftRegisters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		apps := f.withApps(2)
		// App 1 has more calls left, and App 2 more registrations.
		left := map[string]map[bool]int{"installation 11": {false: 4000, true: 1}, "installation 12": {false: 3000, true: 9000}}
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			who, jit := f.by[len(f.by)-1], strings.HasSuffix(r.URL.Path, "/generate-jitconfig")
			if of, ok := left[who]; ok {
				w.Header().Set("X-RateLimit-Limit", "10000")
				w.Header().Set("X-RateLimit-Remaining", fmt.Sprint(of[jit]))
				w.Header().Set("X-RateLimit-Reset", fmt.Sprint(nextHour().Unix()))
				w.Header().Set("X-RateLimit-Resource", map[bool]string{false: "core", true: "actions_runner_registration"}[jit])
			}
			return false
		}
		c := newClient(t, github.Config{Transport: direct{f}, Apps: apps})
		for n := range 4 {
			list(t, c)
			if _, _, err := c.JIT(t.Context(), "acme/app", fmt.Sprint("r", n), []string{"x"}); err != nil {
				t.Fatal(err)
			}
		}
		by := map[string]int{}
		for i, call := range f.calls {
			if strings.HasSuffix(call, "/generate-jitconfig") {
				by[f.by[i]]++
			}
		}
		if d := cmp.Diff(map[string]int{"installation 11": 1, "installation 12": 3}, by); d != "" {
			t.Error(d)
		}
	})
}

// countedCalls counts the calls that go out.
type countedCalls struct {
	next http.RoundTripper
	made atomic.Int64
}

func (c *countedCalls) RoundTrip(r *http.Request) (*http.Response, error) {
	c.made.Add(1)
	return c.next.RoundTrip(r)
}
