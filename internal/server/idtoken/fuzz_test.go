package idtoken_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/server/idtoken"
	"github.com/remuda-ci/remuda/internal/server/issuertest"
)

// Whatever a bearer shows is refused with a reason that does not tell it, or is
// what the issuer has signed.
func FuzzBearer(f *testing.F) {
	issuer := issuertest.New(f)
	at := time.Now()
	issuer.Now = func() time.Time { return at }
	v, err := idtoken.New(idtoken.Options{Issuer: issuer.URL, Audience: issuertest.Audience, Now: issuer.Now})
	if err != nil {
		f.Fatal(err)
	}
	token := issuer.Token(nil)
	good, err := v.Verify(f.Context(), token)
	if err != nil || good.RunAttempt != 2 || good.Origin.RunID != "42" {
		f.Fatalf("got %+v, %v", good, err)
	}
	header := issuertest.Claims{"alg": "none", "kid": issuer.KeyID()}
	for _, seed := range []string{
		token, token[:len(token)-1], token + "=", "." + token, issuer.Confused(), issuer.Unsigned(header, issuer.Claims(nil)) + ".e30",
		issuer.Token(issuertest.Claims{"aud": []string{"a", "b"}}), issuer.Token(issuertest.Claims{"exp": 1e300}), "a.b.c", "{}", "e30.e30.e30", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := v.Verify(t.Context(), raw)
		var bad *server.TokenError
		switch {
		case err == nil && got != good:
			t.Errorf("%q is taken for %+v", raw, got)
		case err != nil && !errors.As(err, &bad):
			t.Errorf("%q: %v", raw, err)
		case err != nil && len(raw) > 40 && strings.Contains(err.Error(), raw):
			t.Errorf("%q is told: %v", raw, err)
		}
	})
}
