package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	ecsapi "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/server"
)

const (
	workerToken = "worker-token-of-at-least-32-bytes"
	nudgeToken  = "nudge-token-that-has-32-bytes-too"
)

// servicesRoom is a daemon on this machine whose services are on ECS.
type servicesRoom struct {
	t   *testing.T
	ecs *ecsapi.Client
	url string
	// fleet is that of the daemon.
	fleet *fleet.Fleet
}

// newServicesRoom has two services of ECS: one with its queue here, and one
// whose jobs are rows behind url.
func newServicesRoom(t *testing.T, url string) *servicesRoom {
	t.Helper()
	return newServicesRoomWith(t, url, `
store: {sqlite: {path: DIR/remuda.db}}
compute: {process: {directory: DIR/hosts, runner: DIR, agentd: /bin/true}}
github: {token_env: REMUDA_TEST_TOKEN, url: "http://127.0.0.1:1"}
`)
}

// newServicesRoomWith is newServicesRoom with the rest of the file as given, where DIR is a directory.
func newServicesRoomWith(t *testing.T, url, rest string) *servicesRoom {
	t.Helper()
	a := newAccount(t)
	r := &servicesRoom{t: t, ecs: ecsapi.NewFromConfig(a.cfg)}
	r.makeServices("jobs", "reports")
	dir := t.TempDir()
	for name, text := range map[string]string{"config.sh": "", "worker": workerToken, "nudge": nudgeToken} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("REMUDA_TEST_TOKEN", "x")
	c, err := config.Load(write(t, "controld.yaml", fmt.Sprintf(`
grpc: {addr: "127.0.0.1:0"}
http: {addr: "127.0.0.1:0"}
%[3]s
sweeps: {services: 1s, lease: 1s}
services:
  jobs:
    {region: us-east-1, cluster: runners, ecs_service: jobs, idle_checks: 3, worker_token_file: %[1]s/worker}
  reports:
    region: us-east-1
    cluster: runners
    ecs_service: reports
    nudge_token_file: %[1]s/nudge
    queue: {postgrest: {url: "%[2]s", queued: "jobs?status=eq.queued", busy: "jobs?status=eq.running"}}
`, dir, url, strings.ReplaceAll(rest, "DIR", dir))))
	if err != nil {
		t.Fatal(err)
	}
	r.start(c)
	return r
}

// A fleet that only scales services needs no hosts, no runner and no credentials for GitHub.
func TestAFleetWithoutHosts(t *testing.T) {
	for name, text := range map[string]string{"SQLite": "store: {sqlite: {path: DIR/remuda.db}}", "DynamoDB": "aws: {region: us-east-1, prefix: lone}"} {
		t.Run(name, func(t *testing.T) {
			queued := make(chan string, 1)
			queued <- "*/0"
			r := newServicesRoomWith(t, tableOf(t, queued), text)
			if response, err := http.Get(r.url + "/readyz"); err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("ready: %+v, %v", response, err)
			}
			r.want(200, "/api/jobs", workerToken, `{"service":"jobs","jobId":"j1"}`)
			r.await("jobs", 1, "a job waits")
			r.want(200, "/api/workers/claim", workerToken, `{"service":"jobs","workerId":"w1"}`)
			r.want(200, "/api/jobs/j1/finish", workerToken, `{"service":"jobs","workerId":"w1","attempt":1,"succeeded":true}`)
			r.await("jobs", 0, "nothing to do")
			refresh := r.fleet.NewRefresh(false)
			if err := r.fleet.Drive(t.Context(), refresh, time.Minute); err != nil {
				t.Fatal(err)
			}
			provision, err := r.fleet.NewProvision(fleet.Demand{
				Repository: "acme/shop", RunID: "1", RequestID: "1b4e28ba-2fa1-41d2-883f-0016d3cca427",
				Spec: lifecycle.Spec{Pool: config.DefaultPool, ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, Count: 1, MinimumCount: 1, Timeout: time.Minute},
			})
			if err == nil {
				err = r.fleet.Drive(t.Context(), provision, 0)
			}
			if !errors.As(err, new(*fleet.InvalidError)) {
				t.Errorf("a host was asked for: got error %v", err)
			}
			if page, _, err := r.fleet.List(t.Context(), lifecycle.Filter{}, lifecycle.PageOf{}, time.Now()); err != nil || len(page.Items) > 0 {
				t.Errorf("hosts: %+v, %v", page.Items, err)
			}
		})
	}
}

// Of a fleet without hosts, in AWS, controld writes rows and scales; there is no role of hosts.
func TestThePoliciesOfAFleetWithoutHosts(t *testing.T) {
	path := write(t, "controld.yaml", "aws: {region: eu-west-1}\nservices: {jobs: {cluster: c, ecs_service: s}}\n")
	got := controld(t, "iam", "--config", path)
	for _, says := range []string{`"ecs:UpdateService"`, `"dynamodb:UpdateItem"`} {
		if got.code != 0 || !strings.Contains(got.stdout, says) || strings.Contains(got.stdout, `"ec2:`) || strings.Contains(got.stdout, `"sqs:`) {
			t.Errorf("got %+v, want %s and nothing of hosts", got, says)
		}
	}
	if got := controld(t, "iam", "--role", "host", "--config", path); got.code != exitConfiguration || !strings.Contains(got.stderr, "there are no hosts that need a role") {
		t.Errorf("host: got %+v", got)
	}
	if got := controld(t, "iam", "--role", "refresh", "--config", path); got.code != 0 || !strings.Contains(got.stdout, `"dynamodb:CreateTable"`) || strings.Contains(got.stdout, `"ec2:`) {
		t.Errorf("refresh: got %+v", got)
	}
	if got := controld(t, "config", "check", "--elsewhere", path); got.code != 0 || got.stdout != path+": ok\n" {
		t.Errorf("check: got %+v", got)
	}
}

func (r *servicesRoom) makeServices(names ...string) {
	r.t.Helper()
	cluster := sdk.String("runners")
	_, err := r.ecs.CreateCluster(r.t.Context(), &ecsapi.CreateClusterInput{ClusterName: cluster})
	if err != nil {
		r.t.Fatal(err)
	}
	task, err := r.ecs.RegisterTaskDefinition(r.t.Context(), &ecsapi.RegisterTaskDefinitionInput{
		Family: sdk.String("runner"), ContainerDefinitions: []types.ContainerDefinition{{Name: sdk.String("runner"), Image: sdk.String("runner"), Memory: sdk.Int32(512)}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range names {
		if _, err := r.ecs.CreateService(r.t.Context(), &ecsapi.CreateServiceInput{
			Cluster: cluster, ServiceName: &name, TaskDefinition: task.TaskDefinition.TaskDefinitionArn, DesiredCount: sdk.Int32(0),
		}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// start serves until the test ends.
func (r *servicesRoom) start(c *config.Config) {
	r.t.Helper()
	var log buffer
	d, err := newDaemon(r.t.Context(), c, inputsOf(r.t, c), "test", &log)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.fleet = d.fleet; d.backends.ensure != nil {
		if _, err := d.backends.ensure(r.t.Context(), false); err != nil {
			r.t.Fatal(err)
		}
	}
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	r.url = "http://" + listeners[1].Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx, listeners[0], listeners[1], func() {}) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			r.t.Errorf("serve: %v", err)
		}
		if err := d.close(); err != nil {
			r.t.Errorf("close: %v", err)
		}
		if r.t.Failed() {
			r.t.Log(&log)
		}
	})
}

func (r *servicesRoom) desired(name string) int {
	r.t.Helper()
	out, err := r.ecs.DescribeServices(r.t.Context(), &ecsapi.DescribeServicesInput{Cluster: sdk.String("runners"), Services: []string{name}})
	if err != nil || len(out.Services) != 1 {
		r.t.Fatalf("describe %s: %+v, %v", name, out, err)
	}
	return int(out.Services[0].DesiredCount)
}

// await waits until ECS has got the call.
func (r *servicesRoom) await(name string, desired int, when string) {
	r.t.Helper()
	deadline := time.Now().Add(8 * time.Minute)
	for r.desired(name) != desired {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: %s has %d runners, want %d", when, name, r.desired(name), desired)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// post is a call with a token.
func (r *servicesRoom) post(path, token, body string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (r *servicesRoom) want(status int, path, token, body string) {
	r.t.Helper()
	if got, text := r.post(path, token, body); got != status {
		r.t.Fatalf("POST %s: got %d %s, want %d", path, got, text, status)
	}
}

// TestServicesGoFromZeroAndBack: a job that is submitted gets a runner at once,
// which stays while it works and goes when there is nothing to do; and the same
// for jobs that are elsewhere.
func TestServicesGoFromZeroAndBack(t *testing.T) {
	queued := make(chan string, 1) // what the table has
	queued <- "*/0"
	database := tableOf(t, queued)
	r := newServicesRoom(t, database)

	r.want(200, "/api/jobs", workerToken, `{"service":"jobs","jobId":"j1"}`)
	r.await("jobs", 1, "a job waits")
	r.want(200, "/api/workers/claim", workerToken, `{"service":"jobs","workerId":"w1"}`)
	for range 20 { // four of them would be enough to end an idle one
		time.Sleep(250 * time.Millisecond)
		if n := r.desired("jobs"); n != 1 {
			t.Fatalf("%d runners while one is busy", n)
		}
	}
	r.want(200, "/api/jobs/j1/finish", workerToken, `{"service":"jobs","workerId":"w1","attempt":1,"succeeded":true}`)
	r.await("jobs", 0, "nothing to do")

	<-queued
	queued <- "0-0/1"
	for token, status := range map[string]int{"": 401, "a-stranger's-token-that-is-32-bytes": 401, nudgeToken: 202, workerToken: 202} {
		r.want(status, "/api/scale", token, "")
	}
	r.want(403, "/api/scale", nudgeToken, `{"service":"jobs"}`)
	r.await("reports", 1, "a row waits")
	if n := r.desired("jobs"); n != 0 {
		t.Errorf("a nudge for nothing made %d runners", n)
	}
}

// tableOf is an API whose table of queued jobs has what is in the channel, and
// whose table of running ones is empty.
func tableOf(t *testing.T, queued chan string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		total := "*/0"
		if r.URL.Query().Get("status") == "eq.queued" {
			total = <-queued
			queued <- total
		}
		w.Header().Set("Content-Range", total)
	})}
	go func() { _ = server.Serve(l) }() // it ends when it is closed
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + l.Addr().String()
}

// A fleet on this machine has a policy for its services, and for nothing else.
func TestThePolicyOfServicesAlone(t *testing.T) {
	local := "github: {token_env: X}\n"
	services := "services: {jobs: {region: cn-north-1, cluster: c, ecs_service: s}}\n"
	got := controld(t, "iam", "--config", write(t, "controld.yaml", local+services))
	for _, says := range []string{`"arn:aws-cn:ecs:cn-north-1:*:service/c/s"`, `"ecs:UpdateService"`} {
		if got.code != 0 || !strings.Contains(got.stdout, says) || strings.Contains(got.stdout, "dynamodb") {
			t.Errorf("got %+v, want %s", got, says)
		}
	}
	for _, args := range [][]string{{local}, {local + services, "--role", "host"}} {
		got := controld(t, append([]string{"iam", "--config", write(t, "controld.yaml", args[0])}, args[1:]...)...)
		if got.code != exitConfiguration || !strings.Contains(got.stderr, "has no aws section") {
			t.Errorf("%v: got %+v", args[1:], got)
		}
	}
}

func TestServicesNeedCredentials(t *testing.T) {
	newAccount(t)
	for variable, value := range map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(variable, value)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.sh"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REMUDA_TEST_TOKEN", "x")
	text := fmt.Sprintf("store: {sqlite: {path: %[1]s/remuda.db}}\ncompute: {process: {directory: %[1]s/hosts, runner: %[1]s, agentd: /bin/true}}\ngithub: {token_env: REMUDA_TEST_TOKEN}\n", dir)
	var log bytes.Buffer
	for services, says := range map[string]string{
		"services: {jobs: {region: us-east-1, cluster: c, ecs_service: s}}": "services: they are scaled on ECS, for which AWS credentials are needed",
		"services: {jobs: {}}": "",
	} {
		c, err := config.Load(write(t, "controld.yaml", text+services+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDaemon(t.Context(), c, inputsOf(t, c), "test", &log)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got error %v, want %q", services, err, says)
		}
		if err == nil {
			_ = d.close() // nothing was written
		}
	}
}

// TestAnyOf: of several files of tokens, one that cannot be read hides no other, and is not kept quiet.
func TestAnyOf(t *testing.T) {
	there := func() ([]lifecycle.Secret, error) { return []lifecycle.Secret{"a"}, nil }
	broken := errors.New("no such file")
	gone := func() ([]lifecycle.Secret, error) { return nil, broken }
	for name, test := range map[string]struct {
		sources []server.TokenSource
		err     error
	}{"both": {[]server.TokenSource{there, there}, nil}, "the first is gone": {[]server.TokenSource{gone, there}, broken}, "the last is gone": {[]server.TokenSource{there, gone}, broken}} {
		tokens, err := anyOf(test.sources)()
		if want := map[bool]int{true: 2, false: 1}[test.err == nil]; len(tokens) != want || !errors.Is(err, test.err) {
			t.Errorf("%s: %d tokens, error %v; want %d and %v", name, len(tokens), err, want, test.err)
		}
	}
}

// TestScaleTokensOfSome: services that are not scaled, and those without a token, take it from no other.
func TestScaleTokensOfSome(t *testing.T) {
	c := config.Default()
	c.Services = map[string]config.Service{
		"a": {}, "b": {}, "c": {}, "d": {Cluster: "c", ECSService: "d", Region: "eu-west-1"}, "e": {Cluster: "c", ECSService: "e", Region: "eu-west-1", NudgeTokenFile: "/e"},
	}
	for range 20 { // a map has no order
		if got := slices.Collect(maps.Keys(scaleTokens(c))); !slices.Equal(got, []string{"e"}) {
			t.Fatalf("tokens of %v, want of e", got)
		}
	}
}
