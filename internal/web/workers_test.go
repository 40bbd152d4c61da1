package web_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/web"
)

const (
	workerToken = "the-token-of-the-workers-of-render"
	otherToken  = "the-token-of-the-workers-of-jobs"
)

// callees answers with what it was called with, or with an error.
type callees struct {
	err error
	// stuck holds calls up until it is closed; nil: it does not.
	stuck, called chan struct{}
}

func (c *callees) Caller(token string) (string, error) {
	switch token {
	case otherToken:
		return "jobs", nil
	case workerToken:
		return "render", nil
	}
	return "", status.Error(codes.Unauthenticated, "the token is not the worker token of a service")
}

func (c *callees) Call(_ context.Context, from, call string, fields map[string]string, request []byte) ([]byte, error) {
	if c.stuck != nil {
		c.called <- struct{}{}
		<-c.stuck
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&text, " %s=%s", name, fields[name])
	}
	return fmt.Appendf(nil, "%s %s%s %d %.40s", from, call, text.String(), len(request), request), c.err
}

// post makes a call with a body.
func post(t *testing.T, method, url, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(answer)), response.Header
}

func startWorkers(t *testing.T, c *callees) string {
	t.Helper()
	_, url := start(t, web.Options{Ready: isReady, Metrics: metrics(), Workers: web.NewWorkerRoutes(c, hclog.NewNullLogger())})
	return url
}

func TestWorkerRoutes(t *testing.T) {
	url := startWorkers(t, &callees{})
	long := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"submit", "POST", "/api/jobs", `{}`, 200, "render SubmitJob 2 {}"},
		{"get", "GET", "/api/jobs/a.b", "", 200, "render GetJob job_id=a.b 2 {}"},
		{"get of a service", "GET", "/api/jobs/a?service=render", "", 200, `render GetJob job_id=a 20 {"service":"render"}`},
		{"get of two services", "GET", "/api/jobs/a?service=render&service=x", "", 400, `"service": is there more than once`},
		{"list of jobs", "GET", "/api/jobs?page_size=5", "", 200, `render ListJobs 17 {"page_size":"5"}`},
		{"list of jobs by states", "GET", "/api/jobs?states=A&states=B", "", 200, `render ListJobs 20 {"states":["A","B"]}`},
		{"list of jobs by one state", "GET", "/api/jobs?states=A", "", 200, `render ListJobs 16 {"states":["A"]}`},
		{"log", "POST", "/api/jobs/a/log", `{"lines":""}`, 200, `render AppendJobLog job_id=a 12 {"lines":""}`},
		{"finish", "POST", "/api/jobs/a/finish", `{}`, 200, "render FinishJob job_id=a 2 {}"},
		{"heartbeat", "POST", "/api/workers/heartbeat", `{}`, 200, "render Heartbeat 2 {}"},
		{"claim", "POST", "/api/workers/claim", `{}`, 200, "render ClaimJob 2 {}"},
		{"list", "GET", "/api/workers?page_size=5", "", 200, `render ListWorkers 17 {"page_size":"5"}`},
		{"a payload of 64 KiB", "POST", "/api/jobs", long(88 << 10), 200, "render SubmitJob 90112"},
		{"a long payload", "POST", "/api/jobs", long(96<<10 + 1), 413, "more than 98304 bytes"},
		{"lines of 64 KiB", "POST", "/api/jobs/a/log", long(6*64<<10 + 1000), 200, "render AppendJobLog job_id=a 394216"},
		{"a long log", "POST", "/api/jobs/a/log", long(400<<10 + 1), 413, "more than 409600 bytes"},
		{"a long heartbeat", "POST", "/api/workers/heartbeat", long(4<<10 + 1), 413, "more than 4096 bytes"},
		{"another method", "PUT", "/api/jobs", `{}`, 405, "Method Not Allowed"},
		{"no such path", "POST", "/api/jobs/a/b/log", `{}`, 404, "404 page not found"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, answer, header := post(t, test.method, url+test.path, test.body, "Authorization", "Bearer "+workerToken, "Content-Type", "application/json")
			if code != test.status || !strings.HasPrefix(answer, test.want) {
				t.Errorf("got %d %.100q, want %d %q", code, answer, test.status, test.want)
			}
			if code == 200 && (header.Get("Content-Type") != "application/json" || header.Get("Cache-Control") != "no-store") {
				t.Errorf("header: %v", header)
			}
		})
	}
}

// TestWorkerTokens: a caller without one gets 401 before anything of a body is read.
func TestWorkerTokens(t *testing.T) {
	url := startWorkers(t, &callees{})
	for name, test := range map[string]struct {
		header []string
		want   string
	}{
		"none":      {nil, `a worker token is required: "Authorization: Bearer TOKEN"`},
		"wrong":     {[]string{"Authorization", "Bearer x"}, "the token is not the worker token of a service"},
		"basic":     {[]string{"Authorization", "Basic " + workerToken}, "a worker token is required"},
		"two":       {[]string{"Authorization", "Bearer " + workerToken, "Authorization", "Bearer x"}, "a worker token is required"},
		"no scheme": {[]string{"Authorization", workerToken}, "a worker token is required"},
	} {
		t.Run(name, func(t *testing.T) {
			code, answer, header := post(t, "POST", url+"/api/workers/heartbeat", strings.Repeat("x", 1<<20), test.header...)
			if code != 401 || !strings.HasPrefix(answer, test.want) || header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("got %d %q %v, want 401 %q", code, answer, header, test.want)
			}
		})
	}
	code, answer, _ := post(t, "POST", url+"/api/jobs", `{}`, "Authorization", "Bearer "+workerToken)
	if code != 415 || answer != "send JSON, with the content type application/json" {
		t.Errorf("without a content type: got %d %q", code, answer)
	}
}

func TestWorkerErrors(t *testing.T) {
	for code, want := range map[codes.Code]int{
		codes.InvalidArgument: 400, codes.Unauthenticated: 401, codes.PermissionDenied: 403, codes.NotFound: 404, codes.AlreadyExists: 409,
		codes.FailedPrecondition: 409, codes.Internal: 500, codes.Unavailable: 503, codes.DeadlineExceeded: 504,
	} {
		url := startWorkers(t, &callees{err: status.Error(code, "what is wrong")})
		got, answer, header := post(t, "GET", url+"/api/jobs/a", "", "Authorization", "Bearer "+workerToken)
		if got != want || answer != "what is wrong" {
			t.Errorf("%s: got %d %q, want %d", code, got, answer, want)
		}
		if (want == 503) != (header.Get("Retry-After") != "") {
			t.Errorf("%s: Retry-After is %q", code, header.Get("Retry-After"))
		}
	}
}

func TestTooManyWorkerCalls(t *testing.T) {
	c := &callees{stuck: make(chan struct{}), called: make(chan struct{})}
	url := startWorkers(t, c)
	defer close(c.stuck)
	for range 256 {
		go func() {
			r, err := http.NewRequest("GET", url+"/api/jobs/a", nil)
			if err != nil {
				return
			}
			r.Header.Set("Authorization", "Bearer "+workerToken)
			if response, err := http.DefaultClient.Do(r); err == nil {
				_ = response.Body.Close()
			}
		}()
		<-c.called
	}
	if code, answer, _ := post(t, "GET", url+"/api/jobs/a", "", "Authorization", "Bearer "+workerToken); code != 503 || answer != "too many calls at once" {
		t.Errorf("got %d %q", code, answer)
	}
}

// Bodies that do not come keep out only the callers with that token, and at most as
// many of them are awaited as there are places.
func TestBodiesThatDoNotComeKeepNoOthersOut(t *testing.T) {
	url := startWorkers(t, &callees{})
	for range 300 {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /api/workers/heartbeat HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{", workerToken)
	}
	heartbeat := func(token string) int {
		code, _, _ := post(t, "POST", url+"/api/workers/heartbeat", "{}", "Authorization", "Bearer "+token, "Content-Type", "application/json")
		return code
	}
	for heartbeat(workerToken) != 503 { // until the server has begun with them
	}
	for range 10 {
		if code := heartbeat(otherToken); code != 200 {
			t.Fatalf("with another token: got %d", code)
		}
	}
}

// TestNoWorkers: where there are no services, there is nothing to be asked for.
func TestNoWorkers(t *testing.T) {
	_, url := start(t, web.Options{Ready: isReady, Metrics: metrics()})
	if code, _, _ := post(t, "POST", url+"/api/workers/claim", `{}`, "Authorization", "Bearer "+workerToken); code != 404 {
		t.Errorf("got %d, want 404", code)
	}
}
