package github_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestRunnersRegisterWithTheWebURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://api.github.com":        "https://github.com/acme/app",
		"https://api.github.com/":       "https://github.com/acme/app",
		"https://api.acme.ghe.com":      "https://acme.ghe.com/acme/app",
		"https://ghes.acme.com/api/v3":  "https://ghes.acme.com/acme/app",
		"https://api.acme.com/api/v3/":  "https://api.acme.com/acme/app",
		"http://127.0.0.1:7081/api/v3":  "http://127.0.0.1:7081/acme/app",
		"http://127.0.0.1:7081":         "http://127.0.0.1:7081/acme/app",
		"http://[::1]:7081/api/v3":      "http://[::1]:7081/acme/app",
		"https://proxy/ghes/api/v3":     "https://proxy/ghes/acme/app",
		"https://ghes.acme.com:8443///": "https://ghes.acme.com:8443/acme/app",
	} {
		t.Run(url, func(t *testing.T) {
			f := newFake()
			c := newClient(t, github.Config{URL: url, Transport: rewrite{direct{f}}})
			r, err := c.RegistrationToken(t.Context(), "acme/app")
			if err != nil {
				t.Fatal(err)
			}
			if r.URL != want {
				t.Errorf("got %s, want %s", r.URL, want)
			}
		})
	}
}

// rewrite leads every base path to the fake's.
type rewrite struct{ direct }

func (d rewrite) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	_, path, _ := strings.Cut(r.URL.Path, "/repos/")
	r.URL.Path = "/api/v3/repos/" + path
	return d.direct.RoundTrip(r)
}

func TestNewRefuses(t *testing.T) {
	for _, url := range []string{
		"", "api.github.com", "ftp://api.github.com", "https://", "https://h?x=1", "https://h#x",
		"https://user:word@h", "http://ghes.acme.com/api/v3", "http://10.0.0.1", "%",
	} {
		if _, err := github.New(github.Config{URL: url, Token: github.StaticToken("x")}); err == nil {
			t.Errorf("URL %q was taken", url)
		}
	}
	if _, err := github.New(github.Config{URL: "https://api.github.com"}); err == nil {
		t.Error("no token source was taken")
	}
}

func TestTokenSources(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	c := newClient(t, github.Config{Transport: direct{newFake("a")}, Token: github.TokenFile(path)})
	list := func() error {
		_, err := c.Runners(t.Context(), "acme/app", lifecycle.PageOf{})
		return err
	}
	if err := list(); err == nil || !strings.Contains(err.Error(), "read GitHub token") {
		t.Errorf("missing file: got %v", err)
	}
	for content, ok := range map[string]bool{pat: true, pat + "\n": true, "": false, "two words": false, "a\nb": false} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := list(); (err == nil) != ok {
			t.Errorf("file with %q: got %v", content, err)
		}
	}
	for _, token := range []lifecycle.Secret{"", "a b", "a\n", "é"} {
		c := newClient(t, github.Config{Transport: direct{newFake()}, Token: github.StaticToken(token)})
		if _, err := c.RemoveToken(t.Context(), "acme/app"); err == nil || !strings.Contains(err.Error(), "one word") {
			t.Errorf("token %q: got %v", token.Reveal(), err)
		}
	}
}

// A redirect must not carry the token to another host.
func TestTheTokenStaysWithItsHost(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		answer(w, http.StatusOK, `{"total_count":0,"runners":[]}`)
	}))
	defer other.Close()
	f := newFake()
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		return true
	}
	if _, err := serve(t, f).Runners(t.Context(), "acme/app", lifecycle.PageOf{}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != "" {
		t.Errorf("the other host was sent %q", got)
	}
}
