package openapitest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// Proxy stands between daemons, which are processes of their own, and GitHub's stand-in at target: every call of GitHub's through it
// is held against the description, as by Check. It ends with the test.
func Proxy(t testing.TB, target string) *httptest.Server {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		// The Host stays: of it the stand-in makes the addresses in its answers, so that these lead here too.
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		Transport: Check(t, transport),
		// A daemon that was killed in a call, and a stand-in that is down, are what tests of daemons do; the caller sees a 502.
		ErrorLog: log.New(io.Discard, "", 0),
	})
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		transport.CloseIdleConnections()
	})
	return proxy
}
