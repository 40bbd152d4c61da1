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

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, github.Config{Transport: direct{newFake()}})
		registration, err := c.RegistrationToken(t.Context(), "acme/app")
		if err != nil {
			t.Fatal(err)
		}
		remove, err := c.RemoveToken(t.Context(), "acme/app")
		if err != nil {
			t.Fatal(err)
		}
		expires := time.Now().Add(time.Hour)
		want := []lifecycle.Registration{
			{Kind: lifecycle.RegistrationToken, URL: "http://localhost/acme/app", Secret: "AREG1", ExpiresAt: expires},
			{Kind: lifecycle.RegistrationRemove, URL: "http://localhost/acme/app", Secret: "AREM2", ExpiresAt: expires},
		}
		if d := cmp.Diff(want, []lifecycle.Registration{registration, remove}); d != "" {
			t.Error(d)
		}
	})
}

// While GitHub does not answer no host can register, so no host may be claimed:
// a token that is remembered would say otherwise.
func TestNoTokenIsGivenOutWhileGitHubIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := newClient(t, github.Config{Transport: direct{f}})
		mint := func(want lifecycle.Secret) {
			t.Helper()
			r, err := c.RegistrationToken(t.Context(), "acme/app")
			if r.Secret != want || (err == nil) != (want != "") {
				t.Errorf("got %q, %v; want %q", r.Secret.Reveal(), err, want.Reveal())
			}
			if err != nil && !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("got %v, want that GitHub is unavailable", err)
			}
		}
		mint("AREG1")
		mint("AREG1")
		f.before = func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		if _, err := c.Runners(t.Context(), "acme/app", lifecycle.PageOf{}); err == nil {
			t.Fatal("the list came")
		}
		mint("")
		f.before = nil
		mint("AREG2")
		mint("AREG2")
	})
}

func TestTokensAreSharedUntilTheyRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := newClient(t, github.Config{Transport: direct{f}})
		mint := func(want lifecycle.Secret) {
			t.Helper()
			r, err := c.RegistrationToken(t.Context(), "acme/app")
			if err != nil {
				t.Fatal(err)
			}
			if r.Secret != want {
				t.Errorf("got token %s, want %s", r.Secret.Reveal(), want.Reveal())
			}
			if left := time.Until(r.ExpiresAt); left < 10*time.Minute {
				t.Errorf("the token is good for %s only", left)
			}
		}
		mint("AREG1")
		time.Sleep(48 * time.Minute)
		mint("AREG1")
		time.Sleep(time.Second)
		mint("AREG2")
		if f.count() != 2 {
			t.Errorf("%d calls, want 2", f.count())
		}
	})
}

// A token that is short-lived from the start is still handed out, once.
func TestShortLivedTokensAreNotKept(t *testing.T) {
	f := newFake()
	f.lifetime = time.Minute
	c := newClient(t, github.Config{Transport: direct{f}})
	for range 2 {
		if _, err := c.RemoveToken(t.Context(), "acme/app"); err != nil {
			t.Fatal(err)
		}
	}
	if f.count() != 2 {
		t.Errorf("%d calls, want 2", f.count())
	}
}

func TestManyCallersShareOneMinting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := newClient(t, github.Config{Transport: slow{direct{f}, time.Second}})
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		first := make(chan error, 1)
		go func() {
			_, err := c.RegistrationToken(impatient, "acme/app")
			first <- err
		}()
		synctest.Wait()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := c.RegistrationToken(t.Context(), "Acme/App"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller who went away got %v", err)
		}
		if f.count() != 1 {
			t.Errorf("%d calls, want 1", f.count())
		}
	})
}

// slow takes its time, or as long as the call may.
type slow struct {
	direct
	delay time.Duration
}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(s.delay):
		return s.direct.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func TestTokensThatAreNone(t *testing.T) {
	const malformed = "not JSON, other, cut off"
	for name, body := range map[string]string{
		"empty":     ``,
		"null":      `null`,
		"no token":  `{"expires_at":"2030-01-01T00:00:00Z"}`,
		"no expiry": `{"token":"x"}`,
		"not JSON":  `<html>proxy</html>`,
		"other":     `{"token":[1]}`,
		"cut off":   `{"token":"x"`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.before = func(w http.ResponseWriter, _ *http.Request) bool {
					answer(w, http.StatusCreated, body)
					return true
				}
				c := newClient(t, github.Config{Transport: direct{f}})
				if r, err := c.RegistrationToken(t.Context(), "acme/app"); !errors.Is(err, lifecycle.ErrUnavailable) {
					t.Errorf("got %+v, %v", r, err)
				}
				if _, err := c.RemoveToken(t.Context(), "acme/app"); strings.Contains(fmt.Sprint(err), "not GitHub's") != strings.Contains(malformed, name) {
					t.Errorf("got %v", err)
				}
				if _, err := c.Runners(t.Context(), "acme/app", lifecycle.PageOf{}); err == nil && (body == "null" || name == "not JSON") {
					t.Error("the listing took it")
				}
			})
		})
	}
}
