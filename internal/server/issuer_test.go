package server_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/server/idtoken"
	"github.com/remuda-ci/remuda/internal/server/issuertest"
)

// want calls with a good token, and checks how that ends.
func (c *ci) want(t *testing.T, code codes.Code, says string) {
	t.Helper()
	if err := c.use(t.Context(), nil); status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), says) {
		t.Errorf("got %v, want %s with %q", err, code, says)
	}
}

func TestTheIssuerMayBeAway(t *testing.T) {
	c := newCI(t, rule())
	c.issuer.Away.Store(true)
	err := c.use(t.Context(), nil)
	if status.Code(err) != codes.Unavailable || retryOf(err) != 10*time.Second || !strings.Contains(err.Error(), "503") {
		t.Errorf("away at first: %v, to be tried again in %s", err, retryOf(err))
	}
	if strings.Contains(err.Error(), "eyJ") {
		t.Errorf("the token is told: %v", err)
	}
	c.issuer.Away.Store(false)
	c.want(t, codes.Unavailable, "keys") // it was asked just now
	c.advance(10 * time.Second)
	c.want(t, codes.NotFound, "")
	c.issuer.Away.Store(true)
	c.want(t, codes.NotFound, "")
	c.advance(23 * time.Hour)
	c.want(t, codes.NotFound, "")
	c.advance(time.Hour)
	c.want(t, codes.Unavailable, "keys") // too old to be relied on
}

func TestKeysAreAskedForSeldom(t *testing.T) {
	c := newCI(t, rule())
	for range 3 {
		c.want(t, codes.NotFound, "")
	}
	for range 3 {
		err := c.explain(t.Context(), "Bearer "+c.issuer.Sign(claims{"alg": "RS256", "kid": "none"}, c.issuer.Claims(nil)))
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("an unknown key: %v", err)
		}
	}
	if got := c.issuer.Asked.Load(); got != 1 {
		t.Errorf("asked %d times within 10 s", got)
	}
	// What cannot be good costs nothing.
	c.advance(time.Hour)
	for _, bad := range []claims{{"aud": "x"}, {"iss": "x"}, {"exp": c.in(-time.Hour)}} {
		if err := c.use(t.Context(), bad); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if got := c.issuer.Asked.Load(); got != 1 {
		t.Errorf("asked %d times for tokens that cannot be good", got)
	}
	c.want(t, codes.NotFound, "")
	if got := c.issuer.Asked.Load(); got != 2 {
		t.Errorf("asked %d times in an hour", got)
	}
}

func TestKeysChange(t *testing.T) {
	c := newCI(t, rule())
	c.want(t, codes.NotFound, "")
	old := c.issuer.Sign(claims{"alg": "RS256", "kid": "first"}, c.issuer.Claims(nil))
	c.issuer.Rotate("second")
	c.want(t, codes.Unauthenticated, "is signed with a key that")
	c.advance(10 * time.Second)
	c.want(t, codes.NotFound, "")
	if err := c.explain(t.Context(), "Bearer "+old); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a withdrawn key: %v", err)
	}
	// Another key under the same id: the old one is taken for an hour at most.
	c.issuer.Rotate("second")
	c.want(t, codes.Unauthenticated, "has a signature that is not of")
	c.advance(time.Hour)
	c.want(t, codes.NotFound, "")
}

func TestKeysComeFromTheIssuerItself(t *testing.T) {
	c := newCI(t, rule())
	other := issuertest.New(t)
	for _, at := range []string{other.URL + "/.well-known/jwks", strings.Replace(c.issuer.URL, "http:", "https:", 1) + "/.well-known/jwks", "%"} {
		c.issuer.KeysAt(at)
		c.want(t, codes.Unavailable, "discover")
		c.advance(10 * time.Second)
	}
	c.issuer.KeysAt("")
	c.issuer.Moved(other.URL)
	c.want(t, codes.Unavailable, "")
	if other.Asked.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestKeysThatAreNone(t *testing.T) {
	c := newCI(t, rule())
	for name, keys := range map[string]string{
		"nothing":     `{"keys":[]}`,
		"not JSON":    `<html>`,
		"a short key": `{"keys":[{"kty":"RSA","kid":"first","n":"AQAB","e":"AQAB"}]}`,
		"another use": `{"keys":[{"kty":"RSA","kid":"first","use":"enc","n":"` + strings.Repeat("_", 342) + `","e":"AQAB"}]}`,
		// Its signatures need no secret.
		"an exponent of one":     `{"keys":[{"kty":"RSA","kid":"first","n":"` + strings.Repeat("_", 342) + `","e":"AQ"}]}`,
		"another algorithm":      `{"keys":[{"kty":"RSA","kid":"first","alg":"PS256","n":"` + strings.Repeat("_", 342) + `","e":"AQAB"}]}`,
		"a bad modulus":          `{"keys":[{"kty":"RSA","kid":"first","n":"` + strings.Repeat("_", 342) + `!","e":"AQAB"}]}`,
		"a bad exponent":         `{"keys":[{"kty":"RSA","kid":"first","n":"` + strings.Repeat("_", 342) + `","e":"AQAB!"}]}`,
		"an exponent of 32 bits": `{"keys":[{"kty":"RSA","kid":"first","n":"` + strings.Repeat("_", 342) + `","e":"_____w"}]}`,
		"a huge exponent":        `{"keys":[{"kty":"RSA","kid":"first","n":"` + strings.Repeat("_", 342) + `","e":"` + strings.Repeat("_", 342) + `"}]}`,
		"too much":               `{"x": "` + strings.Repeat("x", 2<<20) + `", "keys":[{"kty":"RSA","kid":"first","n":"` + strings.Repeat("_", 342) + `","e":"AQAB"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			c.issuer.Publish(keys)
			c.advance(10 * time.Second)
			c.want(t, codes.Unavailable, "read keys")
		})
	}
}

// The largest exponent is one of 31 bits.
func TestAKeyWithTheLargestExponent(t *testing.T) {
	c := newCI(t, rule())
	c.issuer.Publish(`{"keys":[{"kty":"RSA","kid":"first","n":"` + strings.Repeat("_", 342) + `","e":"f____w"}]}`)
	c.want(t, codes.Unauthenticated, "has a signature that is not of")
}

func TestAVerifierNeedsToKnowWhatToVerify(t *testing.T) {
	for _, o := range []idtoken.Options{{}, {Issuer: "https://x"}, {Audience: "x"}} {
		if _, err := idtoken.New(o); err == nil {
			t.Errorf("%+v is enough", o)
		}
	}
}
