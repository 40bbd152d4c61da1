package cli_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestPage: controld dev has the page at once, and it shows a run from its request to its history.
func TestPage(t *testing.T) {
	s := newStage(t)
	see := func(path string, want ...string) {
		t.Helper()
		req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://"+s.HTTPAddr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d: %v", path, resp.StatusCode, err)
		}
		for _, part := range want {
			if !strings.Contains(string(body), part) {
				t.Errorf("%s lacks %q:\n%s", path, part, body)
			}
		}
	}
	see("/", "Nothing waits for hosts.", "default")
	s.must("provision", "acme/shop/41")
	host := s.hosts()[0].ID
	see("/ui/runs", "acme/shop", `href="/ui/run/acme/shop/41"`)
	see("/ui/hosts", `href="/ui/host/`+host+`"`, "running")
	see("/ui/run/acme/shop/41", "and got 1", "registered for run 41", "<svg")
	s.must("release", "acme/shop/41", "--wait")
	see("/ui/host/"+host, "is idle", "released")
	see("/ui/server", "dev", "github.token_file")
	see("/ui/history", `class="running"`, host)
	see("/ui/cost?by=run&days=1", "acme/shop/41", "total")
	see("/metrics", `remuda_grpc_request_duration_seconds_count{code="OK",method="/remuda.v1.FleetService/ListPools"}`)
}
