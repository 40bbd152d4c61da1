package github_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// list makes a call that costs one.
func list(t *testing.T, c *github.Client) {
	t.Helper()
	if _, err := c.Runners(t.Context(), "acme/app", lifecycle.PageOf{}); err != nil {
		t.Fatal(err)
	}
}

// callsOf are the fake's calls with who made them, since the last time.
func (f *fake) callsOf() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for i, call := range f.calls {
		all = append(all, f.by[i]+": "+strings.Replace(call, "/api/v3", "", 1))
	}
	f.calls, f.by = nil, nil
	return all
}

func TestAnAppFindsItsInstallation(t *testing.T) {
	for name, test := range map[string]struct {
		app          github.App
		organisation bool
		found        string
		runners      string
	}{
		"by app id":        {github.App{AppID: 1}, false, "/repos/acme/app/installation", "/repos/acme/app/actions/runners"},
		"by client id":     {github.App{ClientID: "Iv23app1"}, false, "/repos/acme/app/installation", "/repos/acme/app/actions/runners"},
		"organisation":     {github.App{AppID: 1}, true, "/orgs/acme/installation", "/orgs/acme/actions/runners"},
		"org by client id": {github.App{ClientID: "Iv23app1"}, true, "/orgs/acme/installation", "/orgs/acme/actions/runners"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake("a")
			f.withApps(1)
			test.app.PrivateKey = appPEM()
			c := newClient(t, github.Config{Transport: direct{f}, Apps: []github.App{test.app}, Organization: test.organisation})
			list(t, c)
			list(t, c)
			want := []string{
				"app 1: GET " + test.found, "app 1: POST /app/installations/11/access_tokens",
				"installation 11: GET " + test.runners, "installation 11: GET " + test.runners,
			}
			if d := cmp.Diff(want, f.callsOf()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestInstallationTokensAreMadeAnewBeforeTheyExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		c := newClient(t, github.Config{Transport: direct{f}, Apps: f.withApps(1)})
		tokens := func() (n int) {
			list(t, c)
			for _, call := range f.callsOf() {
				if strings.Contains(call, "access_tokens") {
					n++
				}
			}
			return n
		}
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {55 * time.Minute, 0}, {time.Second, 1}, {54 * time.Minute, 0}} {
			time.Sleep(step.after)
			if got := tokens(); got != step.want {
				t.Errorf("after %s: %d tokens were made, want %d", step.after, got, step.want)
			}
		}
	})
}

func TestManyCallersShareOneInstallationToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		c := newClient(t, github.Config{Transport: slow{direct{f}, time.Second}, Apps: f.withApps(1)})
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				if _, err := c.FindRunner(t.Context(), "acme/app", "a"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if f.count() != 42 {
			t.Errorf("%d calls, want 40 and one each for installation and token", f.count())
		}
	})
}

func TestATokenThatIsRefusedIsMadeAnew(t *testing.T) {
	f := newFake("a")
	c := newClient(t, github.Config{Transport: direct{f}, Apps: f.withApps(1)})
	list(t, c)
	f.callsOf()
	f.tokens = map[string]fakeToken{} // revoked
	list(t, c)
	want := []string{
		"anonymous: GET /repos/acme/app/actions/runners", "app 1: POST /app/installations/11/access_tokens",
		"installation 11: GET /repos/acme/app/actions/runners",
	}
	if d := cmp.Diff(want, f.callsOf()); d != "" {
		t.Error(d)
	}
}

// An App that was removed and installed again has another installation.
func TestAnInstallationThatIsGoneIsLookedForAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		c := newClient(t, github.Config{Transport: direct{f}, Apps: f.withApps(1)})
		list(t, c)
		f.apps[0].on = map[string]int64{"acme/app": 99}
		f.tokens = map[string]fakeToken{}
		if _, err := c.Runners(t.Context(), "acme/app", lifecycle.PageOf{}); !errors.Is(err, lifecycle.ErrRefused) {
			t.Errorf("got %v", err)
		}
		f.callsOf()
		list(t, c)
		want := []string{
			"app 1: GET /repos/acme/app/installation", "app 1: POST /app/installations/99/access_tokens",
			"installation 99: GET /repos/acme/app/actions/runners",
		}
		if d := cmp.Diff(want, f.callsOf()); d != "" {
			t.Error(d)
		}
	})
}

func TestAnAppThatCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*fakeApp)
		want  string
	}{
		"not installed": {func(a *fakeApp) { a.on = nil }, "App 1 is not installed on acme/app: GitHub answered 404; install it there"},
		"suspended":     {func(a *fakeApp) { a.suspended = true }, "App 1 is suspended on acme/app: GitHub answered 403: lift the suspension"},
		"wrong id":      {func(a *fakeApp) { a.id = 7 }, "find the installation of App 1 for acme/app: GitHub answered 401 (Bad credentials): the credentials are not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("a")
				c := newClient(t, github.Config{Transport: direct{f}, Apps: f.withApps(1)})
				healthy := *f.apps[0]
				test.spoil(f.apps[0])
				for range 3 {
					_, err := c.RegistrationToken(t.Context(), "acme/app")
					if !errors.Is(err, lifecycle.ErrRefused) || errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), test.want) {
						t.Errorf("got %v", err)
					}
				}
				if f.count() != 1 {
					t.Errorf("%d calls, want 1: that it cannot be used is known for a while", f.count())
				}
				*f.apps[0] = healthy
				time.Sleep(61 * time.Second)
				if _, err := c.RegistrationToken(t.Context(), "acme/app"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Whether an App is installed is not known while GitHub is down.
func TestAnInstallationIsNotMissingWhileGitHubIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		c := newClient(t, github.Config{Transport: direct{f}, Apps: f.withApps(2)})
		down := true
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if down && f.by[len(f.by)-1] == "app 1" {
				answer(w, http.StatusBadGateway, "")
			}
			return down && f.by[len(f.by)-1] == "app 1"
		}
		f.apps[1].on = nil
		if _, err := c.RegistrationToken(t.Context(), "acme/app"); !errors.Is(err, lifecycle.ErrUnavailable) || errors.Is(err, lifecycle.ErrRefused) {
			t.Errorf("got %v", err)
		}
		if calls := f.callsOf(); len(calls) != 4 {
			t.Errorf("got %v, want three tries of App 1 and one question of App 2", calls)
		}
		down = false
		list(t, c)
	})
}

// Each call is made by the App with the most calls left, the first of them when
// they have as many.
func TestSeveralAppsSpreadTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		f.unfiltered = true
		apps := f.withApps(3)
		delete(f.apps[1].on, "acme/app")
		f.limits = map[string]*fakeLimit{"installation 11": {5000, 4003}, "installation 13": {5000, 4002}}
		c := newClient(t, github.Config{Transport: direct{f}, Apps: apps})
		var got []string
		for i := range 7 {
			if _, err := c.FindRunner(t.Context(), "acme/app", "a"); err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			f.runners[0]["id"] = i + 2 // or the next answer would be free
			f.mu.Unlock()
		}
		for _, call := range f.callsOf() {
			if who, ok := strings.CutPrefix(call, "installation "); ok {
				got = append(got, who[:2])
			}
		}
		// Of both 5,000 are assumed until they have made a call.
		if d := cmp.Diff([]string{"11", "13", "11", "11", "13", "11", "13"}, got); d != "" {
			t.Error(d)
		}
		want := []github.Budget{
			{Credential: "App 1, installation 11", Limit: 5000, Remaining: 3999, ResetAt: nextHour().Local()},
			{Credential: "App 3, installation 13", Limit: 5000, Remaining: 3999, ResetAt: nextHour().Local()},
		}
		if d := cmp.Diff(want, c.Budgets()); d != "" {
			t.Error(d)
		}
	})
}

// Where one App must rest, another makes the call at once.
func TestAnotherAppStepsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		c := newClient(t, github.Config{Transport: direct{f}, Apps: f.withApps(2)})
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if f.by[len(f.by)-1] != "installation 11" {
				return false
			}
			w.Header().Set("Retry-After", "60")
			answer(w, http.StatusForbidden, `{"message":"You have exceeded a secondary rate limit."}`)
			return true
		}
		for range 2 {
			start := time.Now()
			list(t, c)
			if took := time.Since(start); took != 0 {
				t.Errorf("took %s", took)
			}
		}
		var used []string
		for _, call := range f.callsOf() {
			if who, ok := strings.CutPrefix(call, "installation "); ok {
				used = append(used, who[:2])
			}
		}
		if d := cmp.Diff([]string{"11", "12", "12"}, used); d != "" {
			t.Error(d)
		}
	})
}

func TestAppsThatCannotBe(t *testing.T) {
	private := appPEM()
	for name, apps := range map[string][]github.App{
		"no id":    {{PrivateKey: private}},
		"two ids":  {{AppID: 1, ClientID: "Iv1", PrivateKey: private}},
		"no key":   {{AppID: 1}},
		"no PEM":   {{AppID: 1, PrivateKey: "MIIEowIBAAKCAQEA"}},
		"cut off":  {{AppID: 1, PrivateKey: private[:len(private)/2]}},
		"spoilt":   {{AppID: 1, PrivateKey: lifecycle.Secret(strings.Replace(private.Reveal(), "MII", "AAA", 1))}},
		"second":   {{AppID: 1, PrivateKey: private}, {AppID: 2, PrivateKey: "x"}},
		"no Apps":  {},
		"Apps nil": nil,
	} {
		_, err := github.New(github.Config{URL: "https://api.github.com", Apps: apps})
		if err == nil || strings.Contains(err.Error(), "MII") {
			t.Errorf("%s: got %v", name, err)
		}
		if name == "second" && !strings.Contains(err.Error(), "apps[1]: App 2: the private key is not an RSA key in PEM form") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := github.New(github.Config{URL: "https://api.github.com", Token: github.StaticToken("x"), Apps: []github.App{{AppID: 1, PrivateKey: private}}}); err == nil {
		t.Error("a token and an App were taken")
	}
}

// lockedLog is a log that a call may still write to whose caller has left.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Nothing of an App's key, its own tokens and those of its installations shows.
func TestTheSecretsOfAppsStaySecret(t *testing.T) {
	var logs lockedLog
	f := newFake("a")
	c := newClient(t, github.Config{
		Transport: direct{f}, Apps: f.withApps(1), Log: hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: &logs}),
	})
	var shown strings.Builder
	show := func(values ...any) {
		for _, v := range values {
			fmt.Fprintf(&shown, "%v %+v %#v\n", v, v, v)
			err, _ := v.(error)
			for ; err != nil; err = errors.Unwrap(err) {
				fmt.Fprintf(&shown, "%v %+v %#v\n", err, err, err)
			}
		}
	}
	r, id, err := c.JIT(t.Context(), "acme/app", "x", []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	show(r, id, err, github.App{AppID: 1, PrivateKey: appPEM()}, c)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		answer(w, http.StatusInternalServerError, `{"message":"no"}`)
		return true
	}
	_, err = c.RemoveToken(t.Context(), "acme/app")
	show(err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.RemoveToken(ctx, "acme/app")
	show(err)
	shown.WriteString(logs.String())
	for _, secret := range []string{"ghs_", "eyJ", "AJIT", "PRIVATE KEY", appKey().D.String()} {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("%s shows in\n%s", secret, &shown)
		}
	}
	if logs.String() == "" {
		t.Error("nothing was logged")
	}
}
