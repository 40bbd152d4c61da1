package meter_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/demo/cache/meter"
)

const size = 1 << 20

// content is what no protocol makes smaller.
var content = bytes.Repeat([]byte("0123456789abcdef"), size/16)

func serve(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }

func direct(*http.Request) (*url.URL, error) { return nil, nil }

// through is a proxy that needs a password, as an upstream.
func through(t *testing.T, m *meter.Meter, user *url.Userinfo) meter.Upstream {
	t.Helper()
	u, err := url.Parse(m.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = user
	return http.ProxyURL(u)
}

func start(t *testing.T, upstream meter.Upstream) *meter.Meter {
	t.Helper()
	m, err := meter.Start(upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// fetch gets a page of the server through a meter, over a connection of its own.
func fetch(t *testing.T, server *httptest.Server, m *meter.Meter) error {
	t.Helper()
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.Proxy, transport.DisableKeepAlives = through(t, m, nil), true
	answer, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err == nil && !bytes.Equal(got, content) {
		err = fmt.Errorf("got %s with %d bytes", answer.Status, len(got))
	}
	return err
}

// counted checks that a meter has counted so many pages, and for each at most a tenth more for the protocol.
func counted(t *testing.T, m *meter.Meter, pages int64) {
	t.Helper()
	if got := m.Downloaded(); got < pages*size || got > pages*size*11/10 {
		t.Errorf("%d bytes are counted for %d pages of %d", got, pages, size)
	}
}

func TestMeterCountsWhatServersSend(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*httptest.Server{
		"http": httptest.NewServer(http.HandlerFunc(serve)), "https": httptest.NewTLSServer(http.HandlerFunc(serve)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(server.Close)
			far := start(t, direct)
			near := start(t, through(t, far, nil))
			for n := range int64(3) {
				if err := fetch(t, server, near); err != nil {
					t.Fatal(err)
				}
				counted(t, near, n+1)
			}
			counted(t, far, 3)
			if err := fetch(t, server, far); err != nil {
				t.Fatal(err)
			}
			counted(t, near, 3)
		})
	}
}

// What a client sends is not counted.
func TestMeterCountsNoUploads(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	t.Cleanup(server.Close)
	m := start(t, direct)
	client := http.Client{Transport: &http.Transport{Proxy: through(t, m, nil), DisableKeepAlives: true}}
	answer, err := client.Post(server.URL, "text/plain", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if got := m.Downloaded(); got <= 0 || got > 1000 {
		t.Errorf("%d bytes are counted of an empty answer", got)
	}
}

// The name and the password of the environment's proxy are passed on, and its refusal is.
func TestUpstreamWithPassword(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(serve))
	t.Cleanup(server.Close)
	far := start(t, direct)
	guard := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "Basic YWRhOnNlY3JldA==" { // ada:secret
			http.Error(w, "who are you?", http.StatusProxyAuthRequired)
			return
		}
		far.ServeHTTP(w, r)
	}))
	t.Cleanup(guard.Close)
	for password, want := range map[string]string{"secret": "", "guess": "Bad Gateway"} {
		u, err := url.Parse(guard.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("ada", password)
		if err := fetch(t, server, start(t, http.ProxyURL(u))); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("with the password %q: %v, want %q", password, err, want)
		}
	}
}

// A meter that is closed ends what goes through it, and one that is asked for no whole address says what it is.
func TestCloseAndMisuse(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	m := start(t, direct)
	answer, err := http.Get(m.URL() + "/page")
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a request that is for no other server got %s", answer.Status)
	}
	failed := make(chan error)
	go func() { failed <- fetch(t, server, m) }()
	<-begun
	m.Close()
	if err := <-failed; err == nil {
		t.Error("a page came whole through a meter that was closed")
	}
}
