package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standinrunner "github.com/remuda-ci/remuda/internal/githubsim/runner"
)

// TestServeTellsSystemd: Type=notify of controld.service waits for these.
func TestServeTellsSystemd(t *testing.T) {
	dir, programs := t.TempDir(), programsBesideEachOther(t)
	if err := standinrunner.LayOut(filepath.Join(dir, "runner"), filepath.Join(programs, "standin-runner")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	next := func() string {
		t.Helper()
		message := make([]byte, 4096)
		n, err := conn.Read(message)
		if err != nil {
			t.Fatal(err)
		}
		return string(message[:n])
	}
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("REMUDA_TEST_TOKEN", "any")
	d := startDaemon(t, "serve", "--config", write(t, "controld.yaml", `
grpc: {addr: "127.0.0.1:0"}
http: {addr: "127.0.0.1:0"}
store: {sqlite: {path: `+dir+`/remuda.db}}
compute: {process: {directory: `+dir+`/cloud, runner: `+dir+`/runner, agentd: `+programs+`/agentd}}
github: {token_env: REMUDA_TEST_TOKEN}
`))
	if got, want := next(), "READY=1\nSTATUS=serving, grpc "+d.addrs["grpc"]+", http "+d.addrs["http"]; got != want {
		t.Errorf("says %q at start, want %q", got, want)
	}
	d.stop()
	if got := next(); !strings.HasPrefix(got, "STOPPING=1\n") {
		t.Errorf("says %q at its end, want STOPPING=1", got)
	}
}
