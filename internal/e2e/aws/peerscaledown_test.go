package aws_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// noneIdle has each idle runner end at the next sweep, which is a refresh: sweeps by themselves would come in between.
const noneIdle = `
scale_down: {minimum_running_time: 0s, idle_confirmation: 0s}
sweeps: {due: 5m, scale_down: 24h}
`

// BenchmarkPeersScaleDown: a fleet of idle runners of one repository is ended, and each is deregistered.
func BenchmarkPeersScaleDown(b *testing.B) {
	bundle := os.Getenv(scaleDownVariable)
	if bundle == "" {
		b.Skipf("%s is not set: run make peers", scaleDownVariable)
	}
	const runners = 100
	s := newStageWith(b, testrun.System.Dir(b), setup{pools: quietPool, more: noneIdle})
	s.ctx = b.Context()
	_, err := s.fleet.Refresh(s.ctx, &remudav1.RefreshRequest{})
	check(b, err)
	f := newScaleDownFunction(b, bundle)
	run := 20_000
	b.Run(fmt.Sprintf("runners=%d/delay=%s", runners, usual.delay), func(b *testing.B) {
		s.account.controld.Delay(0)
		s.account.hosts.Delay(0)
		for range b.N {
			run++
			s.provision(ask(fmt.Sprint(run), runners))
			s.account.controld.Delay(usual.delay)
			s.account.hosts.Delay(usual.delay)
			s.side().measured(b, s.endIdle).report(b, "remuda-scale-down")
			f.launch(runners)
			side{"peer", f.aws, f.none, f.github}.measured(b, f.run).report(b, "peer-scale-down")
			if left := f.living(); left != 0 {
				b.Fatalf("the function left %d runners", left)
			}
		}
	})
}

// endIdle has all idle runners ended: the sweep of scale-down tells them to go, and the next one ends their machines.
func (s *stage) endIdle() {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, within) // without a deadline the server gives a call a minute
	defer cancel()
	s.eventually("no runner is left", func() bool {
		_, err := s.fleet.Refresh(ctx, &remudav1.RefreshRequest{})
		check(s.TB, err)
		return s.living() == 0
	})
}

// scaleDownFunction is the scale-down function of terraform-aws-github-runner, as node runs it, in an account of its own.
type scaleDownFunction struct {
	testing.TB
	bundle string
	github *local.GitHub
	aws    *awstest.Proxy
	none   *awstest.Proxy // its runners do not run
	ec2    *ec2.Client    // past the proxy
	image  string
}

const (
	scaleDownApp         = 4711
	scaleDownEnvironment = "peers"
	scaleDownAppID       = "/peers/app-id"
	scaleDownAppKey      = "/peers/app-key"
)

func newScaleDownFunction(t testing.TB, bundle string) *scaleDownFunction {
	t.Helper()
	own := &secondAccount{t}
	f := &scaleDownFunction{TB: t, bundle: bundle, github: startGitHub(t), aws: newProxy(own), none: newProxy(own)}
	f.ec2 = ec2.NewFromConfig(awstest.Config(own, awstest.Moto(t)))
	f.image, _, _ = (&account{t: own, ec2: f.ec2}).network()
	f.aws.Delay(usual.delay)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	check(t, err)
	owner, _, _ := strings.Cut(repository, "/")
	check(t, f.github.InstallApp(t.Context(), scaleDownApp, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})), owner))
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	f.aws.Handle("ssm", "GetParameters", parameters(map[string]string{
		scaleDownAppID: fmt.Sprint(scaleDownApp), scaleDownAppKey: base64.StdEncoding.EncodeToString(private),
	}))
	return f
}

// parameters answers for Systems Manager, for which moto would need more packages.
func parameters(values map[string]string) awstest.Hook {
	return func(w http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		var asked struct{ Names []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			awstest.Fail(w, r, http.StatusBadRequest, "SerializationException", err.Error())
			return
		}
		type parameter struct{ Name, Value string }
		var answer struct{ Parameters []parameter }
		for _, name := range asked.Names {
			answer.Parameters = append(answer.Parameters, parameter{name, values[name]})
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_ = json.NewEncoder(w).Encode(answer) // a recorder takes everything
	}
}

// launch makes instances with the tags of the module's, and a registration at GitHub for each, as they have when they are idle.
func (f *scaleDownFunction) launch(n int) {
	f.Helper()
	tags := map[string]string{
		"ghr:Application": "github-action-runner", "ghr:environment": scaleDownEnvironment, "ghr:Type": "Repo", "ghr:Owner": repository,
		"ghr:created_by": "scale-up-lambda",
	}
	spec := ec2types.TagSpecification{ResourceType: ec2types.ResourceTypeInstance}
	for key, value := range tags {
		spec.Tags = append(spec.Tags, ec2types.Tag{Key: &key, Value: &value})
	}
	got, err := f.ec2.RunInstances(f.Context(), &ec2.RunInstancesInput{
		ImageId: &f.image, InstanceType: ec2types.InstanceTypeM5Large, MinCount: sdk.Int32(int32(n)), MaxCount: sdk.Int32(int32(n)),
		TagSpecifications: []ec2types.TagSpecification{spec},
	})
	check(f.TB, err)
	for _, i := range got.Instances {
		f.register(*i.InstanceId)
	}
	time.Sleep(1100 * time.Millisecond) // launch times are of whole seconds, and it ends what was launched before
}

// register registers a runner by the name of its instance. The stand-in has it idle.
func (f *scaleDownFunction) register(name string) {
	f.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "runner_group_id": 1, "labels": []string{"self-hosted"}})
	check(f.TB, err)
	r, err := http.NewRequestWithContext(f.Context(), http.MethodPost, f.github.URL()+"/api/v3/repos/"+repository+"/actions/runners/generate-jitconfig",
		bytes.NewReader(body))
	check(f.TB, err)
	r.Header.Set("Authorization", "Bearer standin")
	answer, err := http.DefaultClient.Do(r)
	check(f.TB, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		f.Fatalf("register %s: %s", name, answer.Status)
	}
}

func (f *scaleDownFunction) living() int {
	f.Helper()
	return (&account{t: f.TB, ec2: f.ec2}).living(f.Context())
}

// run runs the function once. It logs errors and goes on, so what it left is looked at after it.
func (f *scaleDownFunction) run() {
	f.Helper()
	cmd := exec.Command("node", f.bundle)
	cmd.Dir = f.TempDir()
	cmd.Env = append(f.aws.Environ(),
		"PATH="+os.Getenv("PATH"), "HOME="+cmd.Dir, "ENVIRONMENT="+scaleDownEnvironment, "SCALE_DOWN_CONFIG=[]", "COMPUTE_PROVIDER_TYPE=ec2",
		"MINIMUM_RUNNING_TIME_IN_MINUTES=0", "RUNNER_BOOT_TIME_IN_MINUTES=5", "GHES_URL="+f.github.URL(),
		"PARAMETER_GITHUB_APP_ID_NAME="+scaleDownAppID, "PARAMETER_GITHUB_APP_KEY_BASE64_NAME="+scaleDownAppKey,
		"LOG_LEVEL=info", "POWERTOOLS_TRACE_ENABLED=false", "POWERTOOLS_METRICS_NAMESPACE=peers", "POWERTOOLS_SERVICE_NAME=scale-down")
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte(`"level":"ERROR"`)) {
		f.Fatalf("the scale-down function: %v\n%s", err, out)
	}
}
