package openapitest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
)

// judge is a test that only records the failures reported to it.
type judge struct {
	testing.TB
	said []string
}

func (j *judge) Errorf(format string, args ...any) {
	j.said = append(j.said, fmt.Sprintf(format, args...))
}
func (j *judge) Error(args ...any) { j.said = append(j.said, fmt.Sprint(args...)) }

// answers is a server that gives the same answer to every call.
type answers struct {
	status int
	header map[string]string
	body   string
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{}
	for k, v := range a.header {
		h.Set(k, v)
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// with is GitHub's headers, some of them changed; an empty value leaves one out.
func with(changed ...string) map[string]string {
	h := map[string]string{
		"Content-Type": "application/json; charset=utf-8", "X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "4999",
		"X-RateLimit-Used": "1", "X-RateLimit-Reset": "1767225600", "X-RateLimit-Resource": "core",
	}
	for i := 0; i < len(changed); i += 2 {
		h[changed[i]] = changed[i+1]
	}
	return h
}

const (
	runners   = "/repos/acme/app/actions/runners"
	oneRunner = `{"id":1,"name":"a","os":"linux","status":"online","busy":false,"labels":[]}`
	notFound  = `{"message":"Not Found","documentation_url":"https://docs.github.com/rest"}`
	jitBody   = `{"name":"a","runner_group_id":1,"labels":["x"]}`
	jitAnswer = `{"runner":` + oneRunner + `,"encoded_jit_config":"e30="}`
)

func TestWhatIsWrongIsFound(t *testing.T) {
	tests := map[string]struct {
		method, path, body string
		answer             answers
		want               []string // each part of one sentence
	}{
		"a good answer":         {"GET", runners + "/1", "", answers{200, with(), oneRunner}, nil},
		"under /api/v3":         {"GET", "/api/v3" + runners + "/1", "", answers{200, with(), oneRunner}, nil},
		"the stand-in's own":    {"GET", "/_standin/runners", "", answers{200, nil, "nothing of GitHub's"}, nil},
		"no body":               {"DELETE", runners + "/1", "", answers{204, with("Content-Type", ""), ""}, nil},
		"a good request":        {"POST", runners + "/generate-jitconfig", jitBody, answers{201, with(), jitAnswer}, nil},
		"documented everywhere": {"GET", runners + "/1", "", answers{404, with(), notFound}, nil},
		"not modified":          {"GET", runners + "/1", "", answers{304, with("Content-Type", ""), ""}, nil},
		"a page":                {"GET", runners, "", answers{200, with("Link", `<http://x/?page=2>; rel="next", <http://x/?page=3>; rel="last"`), `{"total_count":0,"runners":[]}`}, nil},

		"a missing property":     {"GET", runners + "/1", "", answers{200, with(), `{"id":1}`}, []string{`property "name" is missing`, `"os"`, `"status"`, `"busy"`, `"labels"`}},
		"another type":           {"GET", runners + "/1", "", answers{200, with(), strings.Replace(oneRunner, "1", `"1"`, 1)}, []string{"/id: value must be an integer"}},
		"another value":          {"GET", runners + "/1", "", answers{200, with(), strings.Replace(oneRunner, "[]", `[{"name":"x","type":"odd"}]`, 1)}, []string{"/labels/0/type: value is not one of the allowed values"}},
		"no JSON":                {"GET", runners + "/1", "", answers{200, with(), "no"}, []string{"failed to decode"}},
		"another content type":   {"GET", runners + "/1", "", answers{200, with("Content-Type", "text/plain"), oneRunner}, []string{"Content-Type"}},
		"a body too much":        {"DELETE", runners + "/1", "", answers{204, with(), "{}"}, []string{"has a body and should have none"}},
		"an undocumented status": {"GET", runners + "/1", "", answers{202, with(), oneRunner}, []string{"no such status is documented"}},
		"an error of its own":    {"GET", runners + "/1", "", answers{404, with(), `{"message":"Not Found"}`}, []string{"an error without a documentation_url"}},
		"a documented error":     {"POST", runners + "/generate-jitconfig", jitBody, answers{422, with(), `{"message":1,"documentation_url":""}`}, []string{"/message: value must be a string"}},
		"no rate limit":          {"GET", runners + "/1", "", answers{200, with("X-RateLimit-Remaining", ""), oneRunner}, []string{"header X-RateLimit-Remaining"}},
		"a broken link":          {"GET", runners, "", answers{200, with("Link", `http://x/?page=2; rel=next`), `{"total_count":0,"runners":[]}`}, []string{"header Link"}},
		"an unknown operation":   {"GET", "/repos/acme/app/nothing", "", answers{404, with(), notFound}, []string{"no such operation"}},
		"an unknown method":      {"PUT", runners + "/1", "", answers{404, with(), notFound}, []string{"no such operation"}},
		"a bad request":          {"POST", runners + "/generate-jitconfig", `{"name":"a","runner_group_id":1,"labels":[]}`, answers{422, with(), notFound}, []string{"request: /labels: minimum number of items is 1"}},
		"a bad query":            {"GET", runners + "?per_page=many", "", answers{200, with(), `{"total_count":0,"runners":[]}`}, []string{`request: parameter "per_page"`}},
		"not a time": {"POST", runners + "/remove-token", "", answers{201, with(), `{"token":"x","expires_at":"soon"}`},
			[]string{"/expires_at: string doesn't match the format"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkSaid(t, openapitest.Check, test.answer, test.method, test.path, test.body, test.want)
		})
	}
}

func checkSaid(t *testing.T, check func(testing.TB, http.RoundTripper) http.RoundTripper, a answers, method, path, body string, want []string) {
	t.Helper()
	j := &judge{TB: t}
	req, err := http.NewRequest(method, "http://github.test"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := check(j, a).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != a.body {
		t.Errorf("the answer came through as %q, %v", got, err)
	}
	all := strings.Join(j.said, "\n")
	if len(j.said) != len(want) || slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(all, part) }) {
		t.Errorf("it said:\n%s\nwant: %q", all, want)
	}
}

func TestOfAServerWrongRequestsMustBeRefused(t *testing.T) {
	const bad = `{"name":"a","runner_group_id":1,"labels":[]}`
	path := runners + "/generate-jitconfig"
	checkSaid(t, openapitest.CheckAnswers, answers{422, with(), notFound}, "POST", path, bad, nil)
	checkSaid(t, openapitest.CheckAnswers, answers{404, with(), notFound}, "GET", "/nothing", "", nil)
	checkSaid(t, openapitest.CheckAnswers, answers{201, with(), jitAnswer}, "POST", path, bad, []string{"request: /labels"})
	checkSaid(t, openapitest.CheckAnswers, answers{422, with(), `{}`}, "POST", path, bad, []string{"message", "documentation_url"})
}

// TestExampleDeliveriesFit holds GitHub's own examples against its own description: what it says of a delivery is then worth something.
// Some of the examples are older than the description and lack what came later, so one of each kind must fit.
func TestExampleDeliveriesFit(t *testing.T) {
	for _, kind := range []string{"workflow_job.queued", "workflow_job.in_progress", "workflow_job.completed", "workflow_run.requested", "workflow_run.completed"} {
		files, err := filepath.Glob("../testdata/webhooks/" + kind + ".*.json")
		if err != nil {
			t.Fatal(err)
		}
		event, _, _ := strings.Cut(kind, ".")
		fits, all := 0, &judge{TB: t}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			j := &judge{TB: t}
			if openapitest.Delivery(j, event, body); len(j.said) == 0 {
				fits++
			}
			all.said = append(all.said, j.said...)
		}
		if fits == 0 {
			t.Errorf("none of %d examples of %s fits: %s", len(files), kind, strings.Join(all.said, "; "))
		}
	}
}

func TestWrongDeliveriesAreFound(t *testing.T) {
	j := &judge{TB: t}
	openapitest.Delivery(j, "workflow_job", []byte(`{"action":"queued","sender":1}`))
	openapitest.Delivery(j, "workflow_job", []byte(`{"action":"mislaid"}`))
	openapitest.Delivery(j, "workflow_run", []byte(`[]`))
	if len(j.said) != 5 {
		t.Error(cmp.Diff([]string(nil), j.said))
	}
}

func TestProxyHoldsCallsOfOthersAgainstTheDescription(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for k, v := range with() {
			w.Header().Set(k, v)
		}
		io.WriteString(w, strings.Replace(oneRunner, `"a"`, `"`+r.Host+`"`, 1))
	}))
	defer server.Close()
	j := &judge{TB: t}
	proxy := openapitest.Proxy(j, server.URL)
	for path, said := range map[string]int{runners + "/1": 0, runners: 2} { // of a list it has neither the total nor the runners
		j.said = nil
		resp, err := http.Get(proxy.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(text), strings.TrimPrefix(proxy.URL, "http://")) {
			t.Errorf("%s: %s, %v", path, text, err)
		}
		if len(j.said) != said {
			t.Errorf("%s: it said %q", path, j.said)
		}
	}
	server.Close()
	resp, err := http.Get(proxy.URL + runners)
	if err != nil || resp.StatusCode != 502 {
		t.Errorf("of a server that is down: %v, %v", resp, err)
	}
	resp.Body.Close()
}
