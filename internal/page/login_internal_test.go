package page

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

// A person is sent to a path of the page alone, however a browser reads it.
func FuzzReturnPath(f *testing.F) {
	for _, seed := range []string{"/ui/hosts?a=b", "//evil.example/ui/", `/ui/\evil`, "/ui/%2e%2e/x", "/ui/..;/x", "https://evil.example/ui/", "/ui/login", "/ui/a/../oidc/begin", "/ui//x", "\t/ui/", "/ui/logout?x=1", "/ui/login/", "/ui/./login"} {
		f.Add(seed)
	}
	base, err := url.Parse("https://ci.acme.example/ui/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, to string) {
		got := returnPath(to)
		u, err := base.Parse(got)
		switch {
		case err != nil || u.Scheme != "https" || u.Host != base.Host || !strings.HasPrefix(u.Path, Path):
			t.Errorf("%q leads to %q (%v)", to, u, err)
		case strings.ContainsAny(got, "\\\r\n\t ") || strings.HasPrefix(got, "//") || len(got) > maxReturn:
			t.Errorf("%q leads to %q", to, got)
		}
		for _, own := range []string{"login", "logout", "oidc"} {
			if at := path.Clean(u.Path); at == Path+own || strings.HasPrefix(at, Path+own+"/") {
				t.Errorf("%q leads back to the sign-in: %q", to, got)
			}
		}
	})
}
