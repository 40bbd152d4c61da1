package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v4"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// appKey is the private key of every App, made once: it takes a while.
var appKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func appPEM() lifecycle.Secret {
	return lifecycle.Secret(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(appKey())}))
}

// fakeApp is an App as GitHub knows it.
type fakeApp struct {
	id       int64
	clientID string
	// on has the ids of its installations, by "owner/name" and "owner".
	on        map[string]int64
	suspended bool
	// deliveries are those of its webhook, the newest first; nil: it has none.
	deliveries []map[string]any
	// ignoresStatus is set for an old Enterprise Server, which lists deliveries of any status.
	ignoresStatus bool
}

// fakeToken is a token of an installation.
type fakeToken struct {
	installation int64
	expires      time.Time
}

// fakeLimit is what is left of a limit.
type fakeLimit struct{ limit, left int }

// withApps adds Apps to the fake, installed on acme and acme/app, with the ids 1
// and up; the installation of 1 is 11. It returns how a client calls as them.
func (f *fake) withApps(n int) []github.App {
	var apps []github.App
	f.tokens = map[string]fakeToken{}
	for i := range int64(n) {
		id := i + 1
		f.apps = append(f.apps, &fakeApp{id: id, clientID: fmt.Sprintf("Iv23app%d", id), on: map[string]int64{"acme/app": 10 + id, "acme": 10 + id}})
		apps = append(apps, github.App{AppID: id, PrivateKey: appPEM()})
	}
	return apps
}

// who returns the caller; false: it may not call.
func (f *fake) who(authorization string) (string, bool) {
	token := strings.TrimPrefix(authorization, "Bearer ")
	if token == pat {
		return "token", true
	}
	if t, ok := f.tokens[token]; ok && time.Now().Before(t.expires) {
		return fmt.Sprintf("installation %d", t.installation), true
	}
	for _, app := range f.apps {
		if app.signed(token) == nil {
			return fmt.Sprintf("app %d", app.id), true
		}
	}
	return "anonymous", authorization == "" && f.releases != nil
}

// signed checks a token that the App signed itself, as docs.github.com describes
// it: RS256, its id or client id as issuer, good for ten minutes at most.
func (a *fakeApp) signed(token string) error {
	var claims jwt.RegisteredClaims
	if _, err := jwt.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		if t.Method != jwt.SigningMethodRS256 {
			return nil, errors.New("not RS256")
		}
		return &appKey().PublicKey, nil
	}); err != nil {
		return err
	}
	if claims.Issuer != strconv.FormatInt(a.id, 10) && claims.Issuer != a.clientID {
		return errors.New("another App's")
	}
	if claims.ExpiresAt == nil || claims.ExpiresAt.After(time.Now().Add(10*time.Minute)) {
		return errors.New("good for too long")
	}
	return nil
}

func (f *fake) appOf(who string) *fakeApp {
	for _, app := range f.apps {
		if who == fmt.Sprintf("app %d", app.id) {
			return app
		}
	}
	return nil
}

func (f *fake) appRoutes(mux *http.ServeMux, app *fakeApp) {
	found := func(place string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			id, ok := app.on[place]
			switch {
			case !ok:
				answer(w, http.StatusNotFound, `{"message":"Not Found"}`)
			case app.suspended:
				answer(w, http.StatusOK, fmt.Sprintf(`{"id":%d,"suspended_at":"2026-01-01T00:00:00Z"}`, id))
			default:
				answer(w, http.StatusOK, fmt.Sprintf(`{"id":%d,"suspended_at":null}`, id))
			}
		}
	}
	mux.HandleFunc("GET /api/v3/repos/acme/app/installation", found("acme/app"))
	mux.HandleFunc("GET /api/v3/orgs/acme/installation", found("acme"))
	mux.HandleFunc("POST /api/v3/app/installations/{id}/access_tokens", func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if app.on["acme"] != id && app.on["acme/app"] != id {
			answer(w, http.StatusNotFound, `{"message":"Not Found"}`)
			return
		}
		f.minted++
		token, expires := fmt.Sprintf("ghs_%d_%d", id, f.minted), time.Now().Add(time.Hour)
		f.tokens[token] = fakeToken{id, expires}
		answer(w, http.StatusCreated, fmt.Sprintf(`{"token":%q,"expires_at":%q}`, token, expires.Format(time.RFC3339)))
	})
	if app.deliveries == nil {
		return
	}
	mux.HandleFunc("GET /api/v3/app/hook/deliveries", app.listDeliveries)
	mux.HandleFunc("GET /api/v3/app/hook/deliveries/{id}", one(func() []map[string]any { return app.deliveries }))
}

// listDeliveries pages by a cursor, which is where the next page begins.
func (a *fakeApp) listDeliveries(w http.ResponseWriter, r *http.Request) {
	deliveries, status := a.deliveries, ""
	if r.URL.Query().Get("status") == "failure" && !a.ignoresStatus {
		status = "&status=failure"
		deliveries = slices.DeleteFunc(slices.Clone(deliveries), func(d map[string]any) bool {
			code := d["status_code"].(int)
			return code < 400 || code > 599
		})
	}
	from, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Query().Get("cursor"), "v1_"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	to := min(from+size, len(deliveries))
	if to < len(deliveries) {
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?per_page=%d%s&cursor=v1_%d>; rel="next"`, r.Host, r.URL.Path, size, status, to))
	}
	body, _ := json.Marshal(deliveries[from:to])
	answer(w, http.StatusOK, string(body))
}

// limited answers within the caller's limit: what has not changed is free.
func (f *fake) limited(who string, w http.ResponseWriter, r *http.Request, routes http.Handler) {
	limit := f.limits[who]
	header := func() {
		if limit != nil {
			w.Header().Set("X-RateLimit-Limit", strconv.Itoa(limit.limit))
			w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(limit.left))
			w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(nextHour().Unix(), 10))
			w.Header().Set("X-RateLimit-Resource", "core")
		}
	}
	if limit != nil && limit.left == 0 {
		header()
		answer(w, http.StatusForbidden, `{"message":"API rate limit exceeded"}`)
		return
	}
	made := httptest.NewRecorder()
	routes.ServeHTTP(made, r)
	tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(append([]byte(r.Header.Get("Authorization")), made.Body.Bytes()...)))
	unchanged := r.Method == http.MethodGet && made.Code == http.StatusOK && r.Header.Get("If-None-Match") == tag
	if limit != nil && !unchanged {
		limit.left--
	}
	header()
	for name, values := range made.Header() {
		w.Header()[name] = values
	}
	if r.Method == http.MethodGet && made.Code == http.StatusOK {
		w.Header().Set("ETag", tag)
	}
	if unchanged {
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(made.Code)
	_, _ = w.Write(made.Body.Bytes())
}

func nextHour() time.Time { return time.Now().Truncate(time.Hour).Add(time.Hour) }
