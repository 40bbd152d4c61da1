package idtoken_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/server/idtoken"
	"github.com/remuda-ci/remuda/internal/server/issuertest"
)

// transport is a way to the issuer without a network.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

// verifier is one whose issuer is reached by this way alone.
func verifier(t *testing.T, issuer *issuertest.Issuer, way transport) *idtoken.Verifier {
	t.Helper()
	v, err := idtoken.New(idtoken.Options{Issuer: issuer.URL, Audience: issuertest.Audience, Client: &http.Client{Transport: way}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The issuer of a GitHub Enterprise Server may be behind a proxy, and have an authority of its own: the client that is given knows both.
func TestTheIssuerIsReachedByTheClient(t *testing.T) {
	issuer, asked := issuertest.New(t), 0
	issuer.Close() // no other way leads to it
	v := verifier(t, issuer, func(req *http.Request) (*http.Response, error) {
		asked++
		answer := httptest.NewRecorder()
		issuer.ServeHTTP(answer, req)
		return answer.Result(), nil
	})
	if got, err := v.Verify(t.Context(), issuer.Token(nil)); err != nil || got.Origin.RunID != "42" || asked != 2 {
		t.Errorf("got %+v, %v after %d requests, want run 42 after 2", got, err, asked)
	}
}

// A caller that leaves while the issuer is asked learns when to try again. One that stays waits for 5 s at most.
func TestAnIssuerThatDoesNotAnswer(t *testing.T) {
	issuer := issuertest.New(t)
	for name, tt := range map[string]struct{ stays, waits time.Duration }{"leaves": {time.Second, time.Second}, "stays": {time.Minute, 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := verifier(t, issuer, func(req *http.Request) (*http.Response, error) {
					<-req.Context().Done()
					return nil, req.Context().Err()
				})
				ctx, cancel := context.WithTimeout(t.Context(), tt.stays)
				defer cancel()
				began := time.Now()
				_, err := v.Verify(ctx, issuer.Token(nil))
				var away *lifecycle.UnavailableError
				if !errors.As(err, &away) || away.RetryAfter != 10*time.Second || !strings.Contains(err.Error(), issuer.URL) {
					t.Errorf("got %v, want that %s is away, for 10 s", err, issuer.URL)
				}
				if took := time.Since(began); took != tt.waits {
					t.Errorf("it took %s, want %s", took, tt.waits)
				}
				time.Sleep(time.Minute) // the look ends by itself
			})
		})
	}
}

// A token may have as many bytes as MaxToken says.
func TestTheLongestToken(t *testing.T) {
	issuer := issuertest.New(t)
	v, err := idtoken.New(idtoken.Options{Issuer: issuer.URL, Audience: issuertest.Audience})
	if err != nil {
		t.Fatal(err)
	}
	padded := func(by int) string {
		// With a type of two letters both lengths are possible: in base64 some are not.
		return issuer.Sign(issuertest.Claims{"alg": "RS256", "typ": "ID", "kid": issuer.KeyID()}, issuer.Claims(issuertest.Claims{"x": strings.Repeat("x", by)}))
	}
	long := func(n int) string {
		by := (n - len(padded(0))) * 3 / 4 // three bytes of a claim are four of the token
		for _, more := range []int{0, 1, 2, -1, -2} {
			if token := padded(by + more); len(token) == n {
				return token
			}
		}
		t.Fatalf("no token has %d bytes", n)
		return ""
	}
	_, fits := v.Verify(t.Context(), long(idtoken.MaxToken))
	_, longer := v.Verify(t.Context(), long(idtoken.MaxToken+1))
	var bad *server.TokenError
	if fits != nil || !errors.As(longer, &bad) || bad.Why != "is longer than 8192 bytes" {
		t.Errorf("with 8192 bytes: %v; with one more: %v", fits, longer)
	}
}
