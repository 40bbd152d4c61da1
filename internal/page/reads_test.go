package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"

	"github.com/remuda-ci/remuda/internal/page"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// answered is what a program gets: the status, and a part of the JSON.
type answered struct {
	Code, Message string
	Pools         []struct{ Name string }
	Instance      struct{ InstanceID string }
	Details       []struct{ Type string }
}

// post is a call as curl makes it.
func (w *world) post(from call, name, body string) (int, answered) {
	w.t.Helper()
	from.method = "POST"
	r := from.request(w.t)
	r.URL.Path, r.RequestURI = from.path+page.ReadsPath+name, ""
	r.Body, r.ContentLength = http.NoBody, 0
	if body != "" {
		fresh := httptest.NewRequest("POST", r.URL.String(), strings.NewReader(body))
		r.Body, r.ContentLength = fresh.Body, fresh.ContentLength
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	got := httptest.NewRecorder()
	w.handler.ServeHTTP(got, r)
	var a answered
	_ = json.Unmarshal(got.Body.Bytes(), &a) // a 404 has no JSON
	return got.Code, a
}

// elsewhere is what a browser on this machine sends for a page of a site.
func elsewhere(site string) call {
	c := here()
	c.header = header("Sec-Fetch-Site", site)
	return c
}

func TestReads(t *testing.T) {
	t.Parallel()
	w, guarded := newWorld(t, func(*page.Options) {}), newWorld(t, func(o *page.Options) { o.Tokens = tokens(token) })
	w.fill(3)
	if code, a := guarded.post(there("Authorization", "Bearer "+token), "ListPools", "{}"); code != http.StatusOK || len(a.Pools) != 2 || a.Pools[0].Name != "default" {
		t.Errorf("the pools, with a token: status %d, %+v", code, a)
	}
	if code, a := w.post(here(), "GetInstance", `{"instanceId": "`+instanceID(0)+`"}`); code != http.StatusOK || a.Instance.InstanceID != instanceID(0) {
		t.Errorf("a host, from this machine: status %d, %+v", code, a)
	}
	for name, tt := range map[string]struct {
		from       call
		call, body string
		status     int
		code, says string
	}{
		"a page of another site": {elsewhere("cross-site"), "ListPools", "{}", http.StatusForbidden, "permission_denied", "a page of another site"},
		"a page of a neighbor":   {elsewhere("same-site"), "ListPools", "{}", http.StatusForbidden, "permission_denied", "a page of another site"},
		"from elsewhere":         {there(), "ListPools", "{}", http.StatusForbidden, "permission_denied", "only to callers on its own machine"},
		"no token":               {there(), "ListPools", "{}", http.StatusUnauthorized, "unauthenticated", "a token of page.token_file, or an ID token"},
		"a wrong token":          {there("Authorization", "Bearer "+otherToken), "ListPools", "{}", http.StatusUnauthorized, "unauthenticated", "a token"},
		"a value out of bounds":  {here(), "ListPools", `{"pageSize": -1}`, http.StatusBadRequest, "invalid_argument", "page_size"},
		"no such field":          {here(), "ListPools", `{"size": 1}`, http.StatusBadRequest, "invalid_argument", "size"},
		"no JSON":                {here(), "ListPools", `pools`, http.StatusBadRequest, "invalid_argument", ""},
		"no such host":           {here(), "GetInstance", `{"instanceId": "i-unknown"}`, http.StatusNotFound, "not_found", "i-unknown"},
		"too large":              {here(), "ListPools", `{"pageToken": "` + strings.Repeat("x", 20<<10) + `"}`, http.StatusTooManyRequests, "resource_exhausted", "larger"},
		"a call that changes":    {here(), "TerminateInstance", `{"instanceId": "i-1", "reason": "x"}`, http.StatusNotFound, "", ""},
		"a stream":               {here(), "WatchFleet", `{}`, http.StatusNotFound, "", ""},
	} {
		on := w
		if strings.HasSuffix(name, " token") {
			on = guarded
		}
		if code, a := on.post(tt.from, tt.call, tt.body); code != tt.status || a.Code != tt.code || !strings.Contains(a.Message, tt.says) {
			t.Errorf("%s: status %d, %+v", name, code, a)
		}
	}
	if _, a := w.post(here(), "ListPools", `{"pageSize": -1}`); len(a.Details) != 1 || !strings.Contains(a.Details[0].Type, "BadRequest") {
		t.Errorf("the details of an error are %+v", a.Details)
	}
	if code, _ := w.post(elsewhere("same-origin"), "ListPools", "{}"); code != http.StatusOK {
		t.Errorf("a script of the page: status %d", code)
	}
	utf8 := here()
	utf8.header = header("Content-Type", "application/json; charset=utf-8")
	if code, a := w.post(utf8, "ListPools", `{"size": 1}`); code != http.StatusBadRequest {
		t.Errorf("no such field, in JSON that says its charset: status %d, %+v", code, a)
	}
}

// below is a call for the reads of a browser that is signed in.
func below(c call) call {
	c.path = "/ui"
	return c
}

// A browser that is signed in reads with its session, at an address that its cookies are for. Other sites do not.
func TestReadsInASession(t *testing.T) {
	t.Parallel()
	p := newPeople(t, func(o *page.Options) { o.Tokens = tokens(token) })
	person := p.browser()
	person.signIn()
	cookie, _ := signedIn(t, p.world, token)
	session := "remuda-oidc-session=" + person.cookies["remuda-oidc-session"]
	for name, tt := range map[string]struct {
		from   call
		status int
	}{
		"a person":                         {below(there("Cookie", session)), http.StatusOK},
		"a person, from the page":          {below(there("Cookie", session, "Sec-Fetch-Site", "same-origin")), http.StatusOK},
		"a person, for programs":           {there("Cookie", session), http.StatusUnauthorized},
		"a person, led by another site":    {below(there("Cookie", session, "Sec-Fetch-Site", "cross-site")), http.StatusForbidden},
		"a person, led by a neighbor":      {below(there("Cookie", session, "Sec-Fetch-Site", "same-site")), http.StatusForbidden},
		"a browser that has shown a token": {below(there("Cookie", cookie)), http.StatusOK},
		"a token":                          {below(there("Authorization", "Bearer "+token)), http.StatusOK},
		"a browser without a session":      {below(there()), http.StatusUnauthorized},
		"a browser with another's session": {below(there("Cookie", session[:len(session)-4]+"AAAA")), http.StatusUnauthorized},
	} {
		code, a := p.post(tt.from, "ListPools", "{}")
		if code != tt.status || (len(a.Pools) == 2) != (tt.status == http.StatusOK) {
			t.Errorf("%s: status %d, %+v", name, code, a)
		}
	}
	if code, _ := p.post(below(there("Cookie", session)), "TerminateInstance", `{"instanceId": "i-1", "reason": "x"}`); code != http.StatusNotFound {
		t.Errorf("a call that changes: status %d", code)
	}
}

// workflow is what controld answers a workflow run with: its token.
type workflow struct {
	remudav1.FleetServiceClient
	token string
}

func (w workflow) ListPools(context.Context, *remudav1.ListPoolsRequest, ...grpc.CallOption) (*remudav1.ListPoolsResponse, error) {
	return &remudav1.ListPoolsResponse{Pools: []*remudav1.Pool{{Name: w.token}}}, nil
}

// What may be an ID token is for the server to check, and comes by TLS alone.
func TestReadsWithAnIDToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *page.Options) {
		o.Tokens, o.Workflow = tokens(token), func(token string) remudav1.FleetServiceClient { return workflow{token: token} }
	})
	if code, a := w.post(there("Authorization", "Bearer a.b.c"), "ListPools", "{}"); code != http.StatusOK || len(a.Pools) != 1 || a.Pools[0].Name != "a.b.c" {
		t.Errorf("an ID token: status %d, %+v", code, a)
	}
	if code, a := w.post(there("Authorization", "Bearer "+token), "ListPools", "{}"); code != http.StatusOK || len(a.Pools) != 2 {
		t.Errorf("a token of the page: status %d, %+v", code, a)
	}
	plain := there("Authorization", "Bearer a.b.c")
	plain.header.Del("X-Forwarded-Proto")
	for name, from := range map[string]call{
		"in plaintext": plain, "no ID token": there("Authorization", "Bearer a.b"), "in another form": there("Authorization", "Basic a.b.c"),
		"where browsers read": below(there("Authorization", "Bearer a.b.c")),
	} {
		if code, a := w.post(from, "ListPools", "{}"); code != http.StatusUnauthorized {
			t.Errorf("%s: status %d, %+v", name, code, a)
		}
	}
}

// Every call that changes nothing can be read, by a client of Connect and by GET.
func TestEveryReadIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*page.Options) {})
	w.fill(1)
	s := httptest.NewServer(w.handler)
	t.Cleanup(s.Close)
	client := connect.NewClient[remudav1.ListInstancesRequest, remudav1.ListInstancesResponse](http.DefaultClient, s.URL+page.ReadsPath+"ListInstances")
	resp, err := client.CallUnary(context.Background(), connect.NewRequest(&remudav1.ListInstancesRequest{}))
	if err != nil || len(resp.Msg.GetInstances()) != 1 {
		t.Errorf("a client of Connect: %v", err)
	}
	for _, m := range remudav1.FleetService_ServiceDesc.Methods {
		reads := strings.HasPrefix(m.MethodName, "List") || strings.HasPrefix(m.MethodName, "Get") || strings.HasPrefix(m.MethodName, "Explain") || strings.HasPrefix(m.MethodName, "Plan")
		got, err := http.Get(s.URL + page.ReadsPath + m.MethodName + "?connect=v1&encoding=json&message=" + url.QueryEscape("{}"))
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(got.Body)
		_ = got.Body.Close()
		if there := got.StatusCode != http.StatusNotFound || strings.Contains(body.String(), `"not_found"`); there != reads {
			t.Errorf("%s can be read: %v (status %d: %s)", m.MethodName, there, got.StatusCode, &body)
		}
	}
}
