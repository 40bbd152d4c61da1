package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// asMain has the test binary be first-contact.
const asMain = "FIRST_CONTACT_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	code := m.Run()
	testrun.Runner.Remove()
	os.Exit(code)
}

// standIn serves a stand-in for GitHub until the test ends, and returns its address.
func standIn(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := githubsim.New(githubsim.Options{StateDir: filepath.Join(t.TempDir(), "github")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "http://" + ln.Addr().String()
}

// count returns how many runners or workflow runs the stand-in has.
func count(t *testing.T, url, kind string) int {
	t.Helper()
	r, err := http.NewRequest("GET", url+"/api/v3/repos/acme/app/actions/"+kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer any-token")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct {
		Count int `json:"total_count"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list.Count
}

// TestCleansUpWithoutReader ends what reads the output while a listener runs, and then interrupts, as Ctrl-C does
// with "first-contact … 2>&1 | tee log".
func TestCleansUpWithoutReader(t *testing.T) {
	t.Parallel()
	url, dir, work := standIn(t), filepath.Join(t.TempDir(), "runner"), t.TempDir()
	if err := runner.LayOut(dir, filepath.Join(testrun.Runner.Dir(t), "standin-runner")); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("any-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "--repository", "acme/app", "--token-file", token, "--api-url", url+"/api/v3",
		"--runner", dir, "--work-dir", work, "--only", "labels", "--poll", "10ms", "--quiet-time", "1m")
	cmd.Env = append(os.Environ(), asMain+"=1")
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		if strings.Contains(lines.Text(), "starting the listener") {
			break
		}
	}
	if count(t, url, "runners") == 0 {
		t.Fatal("no runner is registered: the test shows nothing")
	}
	reader.Close()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		t.Fatal("it did not end")
	}
	if code := cmd.ProcessState.ExitCode(); code != findings.ExitFailed {
		t.Errorf("%s, want exit code %d", cmd.ProcessState, findings.ExitFailed)
	}
	files, err := os.ReadDir(work)
	if err != nil {
		t.Fatal(err)
	}
	if runners, runs := count(t, url, "runners"), count(t, url, "runs"); runners+runs+len(files) > 0 {
		t.Errorf("left over: %d runners, %d runs, %v", runners, runs, files)
	}
}
