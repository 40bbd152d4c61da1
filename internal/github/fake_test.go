package github_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// pat is the token that must never show.
const pat = "ghp_0123456789abcdefTOPSECRET"

// fake answers as docs.github.com describes, for the repository acme/app and
// the organization acme, which have the same runners.
type fake struct {
	mu      sync.Mutex
	runners []map[string]any
	calls   []string
	// by has the caller of each call: "token", "app 1" or "installation 11".
	by     []string
	minted int
	// times are those of the calls, for tests that keep them.
	times []time.Time
	// lifetime of the tokens that it mints; GitHub's is an hour.
	lifetime time.Duration
	// labels is the body of the last call that set some.
	labels map[string][]string
	// unfiltered ignores the name filter, as an older server does.
	unfiltered bool
	// limits are calls that are left, by who makes them; without an entry there
	// is no limit. Each is full again at the next full hour.
	limits map[string]*fakeLimit
	// apps and tokens are who may call beside the personal access token.
	apps   []*fakeApp
	tokens map[string]fakeToken
	// The rest is what is asked for beside runners.
	groups   []string
	runs     []map[string]any
	jobs     map[int64][]map[string]any // by the run's id
	releases []map[string]any
	// before may answer in the fake's place; it reports whether it did.
	before func(w http.ResponseWriter, r *http.Request) bool
}

func newFake(names ...string) *fake {
	f := &fake{lifetime: time.Hour}
	for i, name := range names {
		f.runners = append(f.runners, map[string]any{
			"id": i + 1, "name": name, "os": "linux", "status": "online", "busy": i%2 == 1,
			"labels": []map[string]any{{"id": 5, "name": "self-hosted", "type": "read-only"}},
		})
	}
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	who, ok := f.who(r.Header.Get("Authorization"))
	f.calls = append(f.calls, r.Method+" "+r.URL.Path)
	f.by = append(f.by, who)
	if f.before != nil && f.before(w, r) {
		return
	}
	if !ok {
		answer(w, http.StatusUnauthorized, `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest"}`)
		return
	}
	f.limited(who, w, r, f.routes(who))
}

// routes are those that who may call.
func (f *fake) routes(who string) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, `{"message":"Not Found","documentation_url":"https://docs.github.com/rest","status":"404"}`)
	})
	if app := f.appOf(who); app != nil {
		f.appRoutes(mux, app)
		return mux
	}
	for _, place := range []string{"/api/v3/repos/acme/app", "/api/v3/orgs/acme"} {
		runners := place + "/actions/runners"
		mux.HandleFunc("POST "+runners+"/registration-token", f.mint("AREG"))
		mux.HandleFunc("POST "+runners+"/remove-token", f.mint("AREM"))
		mux.HandleFunc("POST "+runners+"/generate-jitconfig", f.jit)
		mux.HandleFunc("GET "+runners, f.list)
		mux.HandleFunc("GET "+runners+"/{id}", f.get)
		mux.HandleFunc("DELETE "+runners+"/{id}", f.remove)
		mux.HandleFunc("PUT "+runners+"/{id}/labels", func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewDecoder(r.Body).Decode(&f.labels)
			answer(w, http.StatusOK, `{"total_count":0,"labels":[]}`)
		})
	}
	mux.HandleFunc("GET /api/v3/orgs/acme/actions/runner-groups", f.listGroups)
	f.runRoutes(mux)
	return mux
}

func (f *fake) mint(prefix string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		f.minted++
		answer(w, http.StatusCreated, fmt.Sprintf(`{"token":"%s%d","expires_at":%q}`,
			prefix, f.minted, time.Now().Add(f.lifetime).Format(time.RFC3339Nano)))
	}
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	list := []map[string]any{}
	for _, runner := range f.runners {
		if name := r.URL.Query().Get("name"); f.unfiltered || name == "" || name == runner["name"] {
			list = append(list, runner)
		}
	}
	paged(w, r, "runners", list)
}

// paged answers with one page of a list, and a link to the next.
func paged(w http.ResponseWriter, r *http.Request, key string, list []map[string]any) {
	total := len(list)
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	page = max(page, 1)
	from, to := min((page-1)*size, total), min(page*size, total)
	if to < total {
		next := *r.URL
		query := next.Query()
		query.Set("page", strconv.Itoa(page+1))
		next.RawQuery = query.Encode()
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s>; rel="next"`, r.Host, next.RequestURI()))
	}
	body, _ := json.Marshal(map[string]any{"total_count": total, key: list[from:to]})
	answer(w, http.StatusOK, string(body))
}

func (f *fake) get(w http.ResponseWriter, r *http.Request) {
	for _, runner := range f.runners {
		if fmt.Sprint(runner["id"]) == r.PathValue("id") {
			body, _ := json.Marshal(runner)
			answer(w, http.StatusOK, string(body))
			return
		}
	}
	answer(w, http.StatusNotFound, `{"message":"Not Found"}`)
}

func (f *fake) remove(w http.ResponseWriter, r *http.Request) {
	for i, runner := range f.runners {
		if fmt.Sprint(runner["id"]) != r.PathValue("id") {
			continue
		}
		if runner["busy"] == true {
			answer(w, http.StatusUnprocessableEntity, `{"message":"Bad request - Runner is currently running a job and cannot be deleted."}`)
			return
		}
		f.runners = append(f.runners[:i], f.runners[i+1:]...)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, http.StatusNotFound, `{"message":"Not Found"}`)
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

// count tells how many calls the fake has had.
func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// serve gives a client of the fake over a real connection.
func serve(t *testing.T, f *fake) *github.Client {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return newClient(t, github.Config{URL: server.URL + "/api/v3"})
}

// direct carries calls to a handler without a network, as a synctest bubble
// needs it.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	response := w.Result()
	response.Request = r
	return response, r.Context().Err()
}

func newClient(t *testing.T, c github.Config) *github.Client {
	t.Helper()
	if c.URL == "" {
		c.URL = "http://localhost/api/v3"
	}
	if c.Token == nil && c.Apps == nil {
		c.Token = github.StaticToken(lifecycle.Secret(pat))
	}
	client, err := github.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
