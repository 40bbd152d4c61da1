package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	standinrunner "github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// daemonProcess is a process of controld that has said that it is ready.
type daemonProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	addrs map[string]string
	log   *buffer
}

func startDaemon(t *testing.T, args ...string) *daemonProcess {
	t.Helper()
	d := &daemonProcess{t: t, cmd: exec.Command(filepath.Join(programsBesideEachOther(t), "controld"), args...), addrs: map[string]string{}, log: &buffer{}}
	d.cmd.Stderr = d.log
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Process.Kill() }) // after stop: nothing left to kill
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready ") {
		t.Fatalf("controld %v says %q (%v):\n%s", args, line, err, d.log)
	}
	for _, field := range strings.Fields(line)[1:] {
		name, value, _ := strings.Cut(field, "=")
		d.addrs[name] = value
	}
	return d
}

func (d *daemonProcess) stop() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil { // it bounds its own end
		d.t.Errorf("controld after SIGTERM: %v\n%s", err, d.log)
	}
}

func (d *daemonProcess) fleet() remudav1.FleetServiceClient {
	d.t.Helper()
	conn, err := grpc.NewClient(d.addrs["grpc"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	return remudav1.NewFleetServiceClient(conn)
}

// TestServe: two replicas of a configuration share hosts and store, and hosts
// outlive both.
func TestServe(t *testing.T) {
	t.Parallel()
	dir, programs := t.TempDir(), programsBesideEachOther(t)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	hub := startDaemon(t, "github-standin", "--addr", "127.0.0.1:0", "--state-dir", filepath.Join(dir, "github"))
	defer hub.stop()
	if err := standinrunner.LayOut(filepath.Join(dir, "runner"), filepath.Join(programs, "standin-runner")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("any\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := write(t, "controld.yaml", fmt.Sprintf(`
grpc: {addr: "127.0.0.1:0"}
http: {addr: "127.0.0.1:0"}
store: {sqlite: {path: %[1]s/remuda.db}}
compute: {process: {directory: %[1]s/cloud, agentd: %[2]s/agentd, runner: %[1]s/runner}}
github: {url: "http://%[3]s/api/v3", token_file: %[1]s/token}
`, dir, programs, hub.addrs["github"]))

	first := startDaemon(t, "serve", "--config", config)
	second := startDaemon(t, "serve", "--config", config)
	answer, err := http.Post("http://"+first.addrs["http"]+"/api/jobs", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("a fleet without services answers workers: %s", answer.Status)
	}
	provision := &remudav1.ProvisionRequest{Repository: repository, RunId: "1", RequestId: "one", Timeout: durationpb.New(time.Minute)}
	got, err := first.fleet().Provision(ctx, provision)
	if err != nil {
		t.Fatalf("%v\n%s", err, first.log)
	}
	id := got.GetInstances()[0].GetInstanceId()
	first.stop()
	if left, err := local.Processes(filepath.Join(dir, "cloud", "hosts", id)); err != nil || len(left) == 0 {
		t.Errorf("the host ended with the replica that launched it (%v)", err)
	}
	if i, err := second.fleet().GetInstance(ctx, &remudav1.GetInstanceRequest{InstanceId: id}); err != nil || i.GetInstance().GetState() != remudav1.State_STATE_RUNNING {
		t.Errorf("the other replica says of the host: %v %v", i, err)
	}
	if _, err := second.fleet().TerminateInstance(ctx, &remudav1.TerminateInstanceRequest{InstanceId: id, Reason: "end of the test"}); err != nil {
		t.Error(err)
	}
	for left := []local.Process{{}}; len(left) > 0 && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if left, err = local.Processes(filepath.Join(dir, "cloud", "hosts", id)); err != nil {
			t.Fatal(err)
		}
	}
	second.stop()
	if ctx.Err() != nil {
		t.Errorf("the host was not ended:\n%s", second.log)
	}
}

// TestServeRefuses are configurations that are right and cannot be served.
func TestServeRefuses(t *testing.T) {
	racepass.CoveredBy(t, "TestServe")
	t.Parallel()
	dir := t.TempDir()
	word, words := write(t, "token", "word\n"), write(t, "token", "two words\n")
	if err := standinrunner.LayOut(filepath.Join(dir, "runner"), "/bin/true"); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	right := map[string]string{
		"grpc": `{addr: "127.0.0.1:0"}`, "http": `{addr: "127.0.0.1:0"}`, "github": "{token_file: " + word + "}",
		"store":   "{sqlite: {path: " + dir + "/remuda.db}}",
		"compute": "{process: {directory: " + dir + "/cloud, agentd: /bin/true, runner: " + dir + "/runner}}",
	}
	tests := map[string]struct {
		section, value string
		code           int
		says           string
	}{
		"no token":        {"github", "{token_env: REMUDA_TEST_NO_SUCH_TOKEN}", 78, "github.token_env: "},
		"two words":       {"github", "{token_file: " + words + "}", 78, "github.token_file: "},
		"no runner":       {"compute", "{process: {directory: " + dir + "/cloud, agentd: /bin/true, runner: " + dir + "}}", 78, "compute.process.runner: " + dir},
		"no agentd":       {"compute", "{process: {directory: " + dir + "/cloud, agentd: /none, runner: " + dir + "/runner}}", 78, "compute.process.agentd: /none"},
		"no directory":    {"store", "{sqlite: {path: " + dir + "/none/remuda.db}}", 78, dir + "/none"},
		"no certificate":  {"grpc", `{addr: "127.0.0.1:0", tls: {cert_file: /none.crt, key_file: /none.key}}`, 78, "/none.crt"},
		"port taken":      {"grpc", `{addr: "` + taken.Addr().String() + `"}`, 1, "grpc.addr: " + taken.Addr().String() + " is in use by another process, such as another controld; end that one, or give another port"},
		"HTTP port taken": {"http", `{addr: "` + taken.Addr().String() + `"}`, 1, "http.addr: " + taken.Addr().String() + " is in use"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sections := maps.Clone(right)
			sections[test.section] = test.value
			var text strings.Builder
			for section, value := range sections {
				fmt.Fprintf(&text, "%s: %s\n", section, value)
			}
			got := controld(t, "serve", "--config", write(t, "controld.yaml", text.String()))
			if got.code != test.code || !strings.Contains(got.stderr, test.says) || got.stdout != "" {
				t.Errorf("exit code %d, want %d, saying %q; stdout %q, stderr:\n%s", got.code, test.code, test.says, got.stdout, got.stderr)
			}
		})
	}
}
