package web_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/web"
)

// nudged is a server that takes "good" for two services, and what was nudged.
type nudged struct {
	mu    sync.Mutex
	names []string
	url   string
}

func startScale(t *testing.T) *nudged {
	t.Helper()
	n := &nudged{}
	_, url := start(t, web.Options{Ready: isReady, Metrics: metrics(), Scale: &web.Scale{
		Services: func(token string) ([]string, error) {
			switch token {
			case "good":
				return []string{"jobs-eu", "jobs-us"}, nil
			case "half":
				return []string{"jobs-us"}, errors.New("the file of another is gone")
			case "unreadable":
				return nil, errors.New("the file is gone")
			}
			return nil, nil
		},
		Nudge: func(service string) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.names = append(n.names, service)
		},
	}})
	n.url = url
	return n
}

func (n *nudged) post(t *testing.T, method, query, authorization string, body io.Reader) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, n.url+"/api/scale"+query, body)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(text)), response.Header
}

func TestScale(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, method, query, authorization, body string
		status                                   int
		says                                     string
		nudged                                   []string
	}{
		{"all of the token's", "POST", "", "Bearer good", "", 202, "looking at jobs-eu, jobs-us", []string{"jobs-eu", "jobs-us"}},
		{"one in the body", "POST", "", "Bearer good", `{"service":"jobs-us"}`, 202, "looking at jobs-us", []string{"jobs-us"}},
		{"one in the query", "POST", "?service=jobs-eu", "bearer good", `{"service":"jobs-us"}`, 202, "looking at jobs-eu", []string{"jobs-eu"}},
		{"what a database sends", "POST", "", "Bearer good", `{"type":"INSERT","record":{"id":7}}`, 202, "looking at", []string{"jobs-eu", "jobs-us"}},
		{"no JSON", "POST", "", "Bearer good", `<job/>`, 202, "looking at", []string{"jobs-eu", "jobs-us"}},
		{"another service", "POST", "", "Bearer good", `{"service":"jobs"}`, 403, "not that of the service that is named", nil},
		{"a file that cannot be read hides no other", "POST", "", "Bearer half", "", 202, "looking at jobs-us", []string{"jobs-us"}},
		{"no file can be read", "POST", "", "Bearer unreadable", "", 503, "cannot check tokens now", nil},
		{"no token", "POST", "", "", "", 401, "a token of a service is required", nil},
		{"an empty token", "POST", "", "Bearer ", "", 401, "a token of a service is required", nil},
		{"another token", "POST", "", "Bearer bad", "", 401, "the token is not that of a service", nil},
		{"another scheme", "POST", "", "Basic good", "", 401, "a token of a service is required", nil},
		{"too much", "POST", "", "Bearer good", strings.Repeat(" ", 65<<10), 413, "more than 64 KiB", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := startScale(t)
			status, text, header := n.post(t, tt.method, tt.query, tt.authorization, strings.NewReader(tt.body))
			if status != tt.status || !strings.Contains(text, tt.says) {
				t.Errorf("got %d %q, want %d and %q", status, text, tt.status, tt.says)
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			slices.Sort(n.names)
			if diff := cmp.Diff(tt.nudged, n.names); diff != "" {
				t.Errorf("nudged (-want +got):\n%s", diff)
			}
			if (status == 401) != (header.Get("WWW-Authenticate") == "Bearer") {
				t.Errorf("WWW-Authenticate is %q", header.Get("WWW-Authenticate"))
			}
		})
	}
}

func TestScaleIsForPost(t *testing.T) {
	t.Parallel()
	n := startScale(t)
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		status, text, header := n.post(t, method, "", "Bearer good", nil)
		if status != 405 || text != "Method Not Allowed" || header.Get("Allow") != "POST" || len(n.names) > 0 {
			t.Errorf("%s: got %d %q, allowed %q, nudged %v", method, status, text, header.Get("Allow"), n.names)
		}
	}
}

// TestNoScale: where no service can be scaled by a token, that is what is said.
func TestNoScale(t *testing.T) {
	t.Parallel()
	_, url := start(t, web.Options{Ready: isReady, Metrics: metrics()})
	n := &nudged{url: url}
	if status, text, _ := n.post(t, "POST", "", "Bearer good", nil); status != 404 || !strings.HasPrefix(text, "no service that is scaled has a token") {
		t.Errorf("POST: got %d %q", status, text)
	}
	if status, _, header := n.post(t, "GET", "", "Bearer good", nil); status != 405 || header.Get("Allow") != "POST" {
		t.Errorf("GET: got %d, allowed %q", status, header.Get("Allow"))
	}
}

// What waits for its body holds a place of its token, and each has so many.
func TestScaleIsBounded(t *testing.T) {
	t.Parallel()
	n := startScale(t)
	var waiting sync.WaitGroup
	var bodies []*io.PipeWriter
	reached := make(chan struct{}, 64)
	for range 64 {
		r, w := io.Pipe()
		bodies = append(bodies, w)
		waiting.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), "POST", n.url+"/api/scale", r)
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Authorization", "Bearer good")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			_ = response.Body.Close()
			if response.StatusCode != 202 {
				t.Errorf("got %d", response.StatusCode)
			}
		})
		go func() { _, _ = fmt.Fprint(w, "{"); reached <- struct{}{} }()
	}
	for range 64 {
		<-reached // the client has begun to send it
	}
	refused := false
	for !refused { // until the server has begun with each
		status, text, header := n.post(t, "POST", "", "Bearer good", nil)
		refused = status == 503 && text == "too many calls at once" && header.Get("Retry-After") == "2"
	}
	for token, want := range map[string]int{"half": 202, "bad": 401} {
		if status, text, _ := n.post(t, "POST", "", "Bearer "+token, nil); status != want {
			t.Errorf("meanwhile %s: got %d %q, want %d", token, status, text, want)
		}
	}
	for _, w := range bodies {
		_ = w.Close()
	}
	waiting.Wait()
}

func TestScaleNeedsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := web.New(web.Options{Ready: isReady, Metrics: metrics(), Scale: &web.Scale{}}); err == nil {
		t.Error("a scale without its parts was taken")
	}
}
