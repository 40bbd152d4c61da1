package github_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestErrors(t *testing.T) {
	const secondary = `{"message":"You have exceeded a secondary rate limit.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`
	inAnHour := func() string { return strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10) }
	tests := []struct {
		name   string
		status int
		header map[string]func() string
		body   string
		// unavailable, with this wait; else an error that says want
		unavailable bool
		wait        time.Duration
		want        string
		calls       int
	}{
		{name: "bad credentials", status: 401, body: `{"message":"Bad credentials"}`, want: "the credentials are not valid", calls: 1},
		{name: "no permission", status: 403, body: `{"message":"Resource not accessible by personal access token"}`,
			want: "(Resource not accessible by personal access token): the credentials lack a permission; they need administration: write and actions: read on the repository", calls: 1},
		{name: "unknown repository", status: 404, body: `{"message":"Not Found"}`, want: "the repository is unknown, or not visible to the credentials", calls: 1},
		{name: "nonsense", status: 400, body: `{"message":"Problems parsing JSON"}`, want: "GitHub answered 400 (Problems parsing JSON)", calls: 1},
		{name: "down", status: 502, body: `<html>`, unavailable: true, want: "GitHub answered 502", calls: 3},
		{name: "down for a while", status: 503, header: map[string]func() string{"Retry-After": constant("7")}, unavailable: true, wait: 7 * time.Second, calls: 1},
		{name: "accepted", status: 202, body: `{}`, unavailable: true, calls: 3},
		{name: "primary rate limit", status: 403, body: `{"message":"API rate limit exceeded"}`,
			header:      map[string]func() string{"X-RateLimit-Remaining": constant("0"), "X-RateLimit-Reset": inAnHour},
			unavailable: true, wait: time.Hour, want: "rate limit is used up", calls: 1},
		{name: "primary rate limit as 429", status: 429,
			header:      map[string]func() string{"X-RateLimit-Remaining": constant("0"), "X-RateLimit-Reset": inAnHour},
			unavailable: true, wait: time.Hour, calls: 1},
		{name: "secondary rate limit", status: 403, header: map[string]func() string{"Retry-After": constant("30")}, body: secondary,
			unavailable: true, wait: 30 * time.Second, want: "secondary rate limit", calls: 1},
		{name: "secondary rate limit without a time", status: 403, body: secondary, unavailable: true, wait: time.Minute, calls: 1},
		{name: "refused with a time", status: 403, header: map[string]func() string{"Retry-After": constant("5")}, unavailable: true, wait: 5 * time.Second, calls: 1},
		{name: "429 with nothing", status: 429, unavailable: true, wait: time.Minute, calls: 1},
		{name: "429 with a date", status: 429, header: map[string]func() string{"Retry-After": func() string {
			return time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)
		}}, unavailable: true, wait: 20 * time.Second, calls: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.before = func(w http.ResponseWriter, _ *http.Request) bool {
					for k, v := range test.header {
						w.Header().Set(k, v())
					}
					answer(w, test.status, test.body)
					return true
				}
				c := newClient(t, github.Config{Transport: direct{f}})
				_, err := c.RegistrationToken(t.Context(), "acme/app")
				if err == nil || !strings.Contains(err.Error(), test.want) ||
					!strings.HasPrefix(err.Error(), "create a registration token for acme/app: ") {
					t.Errorf("got %v, want %q", err, test.want)
				}
				var u *lifecycle.UnavailableError
				if got := errors.As(err, &u); got != test.unavailable || errors.Is(err, lifecycle.ErrUnavailable) != test.unavailable {
					t.Fatalf("unavailable: got %t: %v", got, err)
				}
				if refused := errors.Is(err, lifecycle.ErrRefused); test.status < 500 && test.status >= 400 && !test.unavailable && !refused {
					t.Errorf("refused for good, and not ErrRefused: %v", err)
				}
				if u != nil && u.RetryAfter != test.wait {
					t.Errorf("retry after %s, want %s", u.RetryAfter, test.wait)
				}
				if f.count() != test.calls {
					t.Errorf("%d calls, want %d", f.count(), test.calls)
				}
			})
		})
	}
}

func constant(s string) func() string { return func() string { return s } }

func TestASecondTryMayHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		f.before = func(w http.ResponseWriter, _ *http.Request) bool {
			if len(f.calls) > 2 {
				return false
			}
			answer(w, http.StatusBadGateway, "")
			return true
		}
		c := newClient(t, github.Config{Transport: direct{f}})
		if err := c.DeleteRunner(t.Context(), "acme/app", 1); err != nil {
			t.Error(err)
		}
		if f.count() != 3 {
			t.Errorf("%d calls, want 3", f.count())
		}
	})
}

// When every second call fails, the second and third tries of many callers are
// rationed.
func TestRetriesHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("name") == "a" {
				return false
			}
			answer(w, http.StatusBadGateway, "")
			return true
		}
		c := newClient(t, github.Config{Transport: direct{f}})
		for range 50 {
			_, _ = c.Runners(t.Context(), "acme/app", lifecycle.PageOf{})
			if _, err := c.FindRunner(t.Context(), "acme/app", "a"); err != nil {
				t.Fatal(err)
			}
		}
		if f.count() < 105 || f.count() > 115 {
			t.Errorf("%d calls for 100 questions, want about 110", f.count())
		}
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, github.Config{Transport: slow{direct{newFake()}, time.Hour}})
		start := time.Now()
		_, err := c.Runners(t.Context(), "acme/app", lifecycle.PageOf{})
		if !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("hanging server: got %v", err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("hanging server: took %s, want 10s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = c.Runners(ctx, "acme/app", lifecycle.PageOf{})
		if !errors.Is(err, context.Canceled) || errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("caller went away: got %v", err)
		}
	})
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c := newClient(t, github.Config{URL: "http://" + addr})
	if _, err := c.RemoveToken(t.Context(), "acme/app"); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestUntrustedCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(newFake())
	server.Config.ErrorLog = hclog.NewNullLogger().StandardLogger(nil)
	server.StartTLS()
	defer server.Close()
	c := newClient(t, github.Config{URL: server.URL})
	_, err := c.RemoveToken(t.Context(), "acme/app")
	if err == nil || errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}

func TestTheTokenStaysSecret(t *testing.T) {
	var logs bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: &logs})
	f := newFake()
	server := httptest.NewServer(f)
	defer server.Close()
	closed := httptest.NewServer(f)
	closed.Close()
	var errs []error
	for _, url := range []string{server.URL + "/api/v3", server.URL, closed.URL} {
		c := newClient(t, github.Config{URL: url, Log: log})
		r, err := c.RegistrationToken(t.Context(), "acme/app")
		errs = append(errs, err, fmt.Errorf("%v %+v %#v", r, r, r))
		_, err = c.Runners(t.Context(), "acme/app", lifecycle.PageOf{})
		errs = append(errs, err, c.DeleteRunner(t.Context(), "acme/other", 1))
	}
	_, err := github.New(github.Config{URL: "https://" + pat + "@api.github.com"})
	errs = append(errs, err)
	_, err = github.New(github.Config{URL: "ht tp://" + pat})
	errs = append(errs, err)
	var unwrapped []error
	for _, err := range errs {
		for ; err != nil; err = errors.Unwrap(err) {
			unwrapped = append(unwrapped, err)
		}
	}
	for _, err := range unwrapped {
		for _, s := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
			if strings.Contains(s, pat) || strings.Contains(s, "AREG") {
				t.Errorf("a secret shows in %s", s)
			}
		}
	}
	if logs.Len() == 0 || strings.Contains(logs.String(), pat) || strings.Contains(logs.String(), "AREG") {
		t.Errorf("a secret shows in the logs, or nothing does:\n%s", &logs)
	}
}
