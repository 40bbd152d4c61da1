//go:build testhost

package host_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	// repository is that of the runs, where a stage has no other.
	repository = "acme/shop"
	// within bounds whatever a test waits for; all take seconds.
	within = 90 * time.Second
)

// stage is a fleet in an account of its own: controld as a process, and a
// machine for each instance.
type stage struct {
	testing.TB
	ctx      context.Context
	world    *world
	account  *account
	machines *machines
	fleet    remudav1.FleetServiceClient
	github   *local.GitHub
	url      string // of GitHub, for controld and the machines
	// repository is that of the runs that the stage provisions and begins.
	repository string
	controld   *exec.Cmd
	exited     chan struct{} // closed when controld has
}

// as is the stage in a subtest.
func (s *stage) as(t testing.TB) *stage {
	other := *s
	other.TB = t
	return &other
}

// of is the stage for runs of another repository.
func (s *stage) of(repository string) *stage {
	other := *s
	other.repository = repository
	return &other
}

// settings of controld. Pools differ in one thing each.
const settings = `
aws:
  region: %s
  instance_profile: %s
  ec2:
    images: {x86_64: %s}
    subnets: [%s]
    security_groups: [%s]
grpc: {addr: "127.0.0.1:0"}
http: {addr: "127.0.0.1:0"}
github: {url: "%s/api/v3", %s}
pools:
  default: {resource_classes: [large], standby: clean, idle_time: 1h}
  brief: {resource_classes: [large], standby: clean, idle_time: 2s}
  spot: {resource_classes: [large], standby: clean, usage_classes: [spot], idle_time: 1h}
  rooted: {resource_classes: [large], standby: clean, idle_time: 1h, privileged: true}
  fleeting: {resource_classes: [large], standby: clean, idle_time: 5s}
  caching: {resource_classes: [large], standby: clean, idle_time: 1h, caches: [{name: go, paths: [~/go/pkg/mod], size_mib: 64, from: [main]}, {name: tools, holds: tools, size_mib: 64, from: [main]}, {name: actions, holds: actions, size_mib: 64, from: [main]}]}
  shared: {resource_classes: [large], standby: clean, idle_time: 1h, reuse: same-owner, caches: [{name: go, paths: [~/go/pkg/mod], size_mib: 64, from: [main]}]}
  hot: {resource_classes: [large], standby: listening, idle_time: 1h}
  broken: {resource_classes: [large], pre_runner: %s}
%stimeouts: {claim_margin: 1s}
sweeps: {due: 500ms, liveness: 2s}
`

// mirroring is a pool that takes an App.
const mirroring = `  mirroring: {resource_classes: [large], standby: clean, idle_time: 1h, caches: [{name: git, holds: git, size_mib: 64, from: [main]}]}
`

func newStage(t testing.TB, change func(types.Instance, *system)) *stage {
	t.Helper()
	return newStageOf(t, image(t), change)
}

// newStageOf is a stage whose machines boot from another image.
func newStageOf(t testing.TB, layers []string, change func(types.Instance, *system)) *stage {
	t.Helper()
	return startStage(t, layers, nil, change)
}

// newStageOfApp is a stage whose controld is a GitHub App, with the pool mirroring.
func newStageOfApp(t testing.TB, change func(types.Instance, *system)) *stage {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	return startStage(t, image(t), key, change)
}

func startStage(t testing.TB, layers []string, app *rsa.PrivateKey, change func(types.Instance, *system)) *stage {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w := newWorld(t)
	s := &stage{TB: t, ctx: ctx, world: w, account: newAccount(t, w), repository: repository}
	s.startGitHub()
	s.startControld(s.configure(app))
	s.machines = startMachinesOf(t, layers, s.account, w, change)
	_, err := s.fleet.Refresh(s.ctx, &remudav1.RefreshRequest{})
	check(t, err)
	return s
}

// startGitHub serves the stand-in at one address for everybody in the world.
func (s *stage) startGitHub() {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(s, err)
	s.url = "https://" + s.world.forwardTLS(s, l.Addr().String())
	sim, err := githubsim.New(githubsim.Options{StateDir: s.TempDir(), BaseURL: s.url, Times: githubsim.QuickTimes})
	check(s, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- sim.Serve(ctx, l) }()
	s.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			s.Error(err)
		}
	})
	s.github = local.NewGitHub(l.Addr().String())
}

// authority is the file with GitHub's certificate, beside controld's
// configuration.
const authority = "github.pem"

func (s *stage) configure(app *rsa.PrivateKey) string {
	s.Helper()
	dir := s.TempDir()
	token, fails, config := filepath.Join(dir, "token"), filepath.Join(dir, "fails"), filepath.Join(dir, "controld.yaml")
	check(s, os.WriteFile(filepath.Join(dir, authority), s.world.certificate.pem, 0o600))
	check(s, os.WriteFile(token, []byte("standin\n"), 0o600))
	check(s, os.WriteFile(fails, []byte("#!/bin/sh\necho 'no such registry mirror' >&2\nexit 3\n"), 0o600))
	image, subnets, group := s.account.network()
	credentials, pools := "token_file: "+token, ""
	if app != nil {
		credentials, pools = s.install(app, filepath.Join(dir, "key.pem")), mirroring
	}
	text := fmt.Sprintf(settings, region, profile, image, strings.Join(subnets, ", "), group, s.url, credentials, fails, pools)
	check(s, os.WriteFile(config, []byte(text), 0o600))
	return config
}

// install makes an App with this key, and returns how controld is it.
func (s *stage) install(app *rsa.PrivateKey, file string) string {
	s.Helper()
	public, err := x509.MarshalPKIXPublicKey(app.Public())
	check(s, err)
	check(s, s.github.InstallApp(s.ctx, 7, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})), "acme"))
	check(s, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(app)}), 0o600))
	return "apps: [{app_id: 7, private_key_file: " + file + "}]"
}

// startControld runs it in the world, where GitHub has the address that is in
// the hosts' records.
func (s *stage) startControld(config string) {
	s.Helper()
	log := &local.Log{}
	cmd := exec.Command("nsenter", "--net=/run/netns/"+s.world.name, filepath.Join(setting.dist, "1.0.0", "controld"), "serve", "--config", config)
	cmd.Env = append(os.Environ(), s.account.controld.Environ()...)
	cmd.Env = append(cmd.Env, "AWS_ENDPOINT_URL="+s.account.controldURL,
		"SSL_CERT_FILE="+filepath.Join(filepath.Dir(config), authority))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	s.exited = make(chan struct{})
	go func() {
		runtime.LockOSThread() // Pdeathsig comes when the thread ends that started it
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
		}
		close(s.exited)
	}()
	check(s, <-started)
	s.controld = cmd
	s.Cleanup(func() {
		s.killControld()
		if s.Failed() {
			s.Logf("controld:\n%s", log)
		}
	})
	s.connect(s.ready(log, "grpc"))
}

// killControld leaves the hosts to themselves.
func (s *stage) killControld() {
	_ = s.controld.Process.Kill() // it may have ended already
	<-s.exited
}

// ready waits for controld's ready line and returns what it says under a name.
func (s *stage) ready(log *local.Log, name string) (value string) {
	s.Helper()
	eventually(s, within, "controld is ready", func() bool {
		select {
		case <-s.exited:
			s.Fatal("controld has ended")
		default:
		}
		for line := range strings.Lines(log.String()) {
			fields, ok := strings.CutPrefix(line, "ready ")
			if !ok || !strings.HasSuffix(line, "\n") {
				continue
			}
			for _, field := range strings.Fields(fields) {
				if v, ok := strings.CutPrefix(field, name+"="); ok {
					value = v
				}
			}
		}
		return value != ""
	})
	return value
}

func (s *stage) connect(addr string) {
	s.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(s.world.dial))
	check(s, err)
	s.Cleanup(func() { _ = conn.Close() }) // closing twice is its only error
	s.fleet = remudav1.NewFleetServiceClient(conn)
}

// provision gets one host for a run, of a pool, and returns its instance.
func (s *stage) provision(runID, pool string) *instance {
	s.Helper()
	got, err := s.tryToProvision(runID, pool)
	if err != nil {
		s.Fatalf("provision run %s: %v", runID, err)
	}
	return s.machines.of(s, got.GetInstances()[0].GetInstanceId())
}

func (s *stage) tryToProvision(runID, pool string) (*remudav1.ProvisionResponse, error) {
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	usage := remudav1.UsageClass_USAGE_CLASS_ON_DEMAND
	if pool == "spot" {
		usage = remudav1.UsageClass_USAGE_CLASS_SPOT
	}
	return s.fleet.Provision(ctx, &remudav1.ProvisionRequest{
		Repository: s.repository, RunId: runID, RequestId: "request-" + runID, Pool: pool, UsageClass: usage,
		InstanceCount: proto.Int32(1), Timeout: durationpb.New(within),
	})
}

func (s *stage) release(runID string) *remudav1.ReleaseResponse {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	got, err := s.fleet.Release(ctx, &remudav1.ReleaseRequest{Repository: s.repository, RunId: runID, Wait: true})
	if err != nil {
		s.Fatalf("release run %s: %v", runID, err)
	}
	return got
}
