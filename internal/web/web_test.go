package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/web"
)

// start serves on a port of its own and returns where.
func start(t testing.TB, o web.Options) (s *web.Server, url string) {
	t.Helper()
	s, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop(context.Background())
		if err := <-served; err != nil {
			t.Errorf("Serve after Stop: %v", err)
		}
	})
	return s, "http://" + l.Addr().String()
}

func metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "some_metric 1") })
}

func isReady(context.Context) error { return nil }

func call(t *testing.T, method, url string, header ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(body)), response.Header
}

func TestAnswers(t *testing.T) {
	away := func(context.Context) error { return errors.New("store: disk full") }
	tests := map[string]struct {
		method, path string
		header       []string
		ready        func(context.Context) error
		status       int
		body         string
	}{
		"alive":                      {"GET", "/healthz", nil, isReady, 200, "alive"},
		"alive though not ready":     {"GET", "/healthz", nil, away, 200, "alive"},
		"ready":                      {"GET", "/readyz", nil, isReady, 200, "ready"},
		"not ready, and why":         {"GET", "/readyz", nil, away, 503, "not ready: store: disk full"},
		"metrics":                    {"GET", "/metrics", nil, isReady, 200, "some_metric 1"},
		"metrics while not ready":    {"GET", "/metrics", nil, away, 200, "some_metric 1"},
		"nothing is changed here":    {"POST", "/healthz", nil, isReady, 405, "Method Not Allowed"},
		"no webhooks yet":            {"POST", "/webhooks/github", nil, isReady, 404, "404 page not found"},
		"nothing at the root":        {"GET", "/", nil, isReady, 404, "404 page not found"},
		"headers beyond the bound":   {"GET", "/healthz", []string{"X-Long", strings.Repeat("x", 40<<10)}, isReady, 431, "431 Request Header Fields Too Large"},
		"below a path that is there": {"GET", "/healthz/more", nil, isReady, 404, "404 page not found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, url := start(t, web.Options{Ready: test.ready, Metrics: metrics()})
			status, body, _ := call(t, test.method, url+test.path, test.header...)
			if status != test.status || body != test.body {
				t.Errorf("%s %s: %d %q, want %d %q", test.method, test.path, status, body, test.status, test.body)
			}
		})
	}
}

func TestNoCacheKeepsHealth(t *testing.T) {
	_, url := start(t, web.Options{Ready: isReady, Metrics: metrics()})
	for _, path := range []string{"/healthz", "/readyz"} {
		if _, _, header := call(t, "GET", url+path); header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: Cache-Control is %q", path, header.Get("Cache-Control"))
		}
	}
}

func TestReadinessIsBounded(t *testing.T) {
	bound := make(chan time.Duration, 1)
	_, url := start(t, web.Options{Metrics: metrics(), Ready: func(ctx context.Context) error {
		deadline, _ := ctx.Deadline()
		bound <- time.Until(deadline)
		return nil
	}})
	call(t, "GET", url+"/readyz")
	if d := <-bound; d <= 0 || d > 2*time.Second {
		t.Errorf("a look at the store may take %s", d)
	}
}

// TestStopCutsOff: a call that does not end must not keep the daemon.
func TestStopCutsOff(t *testing.T) {
	called, stuck := make(chan struct{}), make(chan struct{})
	s, url := start(t, web.Options{Ready: isReady, Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(called)
		<-stuck
	})})
	defer close(stuck)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-called
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Stop(ctx)
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the call was not cut off: %v", err)
	}
}

func TestMissingParts(t *testing.T) {
	for name, o := range map[string]web.Options{"ready": {Metrics: metrics()}, "metrics": {Ready: isReady}} {
		if _, err := web.New(o); err == nil {
			t.Errorf("New without %s succeeds", name)
		}
	}
}
