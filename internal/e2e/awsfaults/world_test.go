// Package awsfaults_test puts the fleet's use-cases on the real adapters of AWS
// before DynamoDB Local and moto, and lets calls fail. Its clock is the test's
// own, and hosts answer whenever an operation has nothing to do: nothing waits,
// and every run makes the same calls.
package awsfaults_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ec2api "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	sqsapi "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/sqs"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

const (
	region     = "us-east-1"
	roleID     = "AROAEXAMPLE"
	repository = "acme/shop"
	image      = "x86_64"
)

// world is a fleet in an account of its own, and its hosts.
type world struct {
	t     *testing.T
	proxy *awstest.Proxy
	gap   *ec2gap.EC2
	fleet *fleet.Fleet
	// ensure makes what the fleet needs in AWS, as a refresh does before its sweeps.
	ensure fleet.Ensure
	ec2    ec2.Options
	// config is for calls through the proxy, and tries are the SDK's there. Region is what is called.
	config sdk.Config
	tries  int
	region string
	// The test's clock: when the world began, and how much time it let pass since. The
	// real one would have a slow machine make other calls.
	began time.Time
	ahead time.Duration

	// What follows goes past the proxy: no fault meets it, and it is not counted.
	truth  *dynamo.Store
	tables *dynamodb.Client // of the truth
	cloud  *ec2api.Client
	github *fakeGitHub
	told   map[string]telling
	made   bool // the tables are there, so there may be hosts
	mute   bool // hosts that never answer

	seenRecords   seen[lifecycle.Record]
	seenInstances seen[types.Instance]
}

// newWorld has calls tried so many times by the SDK. With one, every fault comes
// to the use-cases; with more, the SDK repeats what an adapter believes to do once.
func newWorld(t *testing.T, tries int) *world {
	t.Helper()
	w := &world{t: t, tries: tries, began: time.Now(), region: region, proxy: awstest.NewProxy(t, awstest.Moto(t)), github: newGitHub(), told: map[string]telling{}}
	w.proxy.Route("dynamodb", awstest.DynamoDB(t))
	w.proxy.Handle("sqs", "ReceiveMessage", withoutWaiting)
	w.gap = ec2gap.Install(w.proxy)
	w.config = awstest.Config(t, w.proxy.URL())
	direct := awstest.Config(t, awstest.DynamoDB(t))
	w.tables = dynamodb.NewFromConfig(direct)
	w.truth = dynamo.New(w.tables, dynamo.Options{Now: w.now})
	direct.BaseEndpoint = sdk.String(awstest.Moto(t))
	w.cloud = ec2api.NewFromConfig(direct)
	w.ec2 = ec2.Options{Prefix: "remuda", Region: region, RoleID: roleID, InstanceProfile: "remuda-host", Now: w.now,
		Pools: map[string]ec2.Pool{"default": w.network()}}
	w.fleet = w.newFleet()
	return w
}

// network is the account's own: what every new one has.
func (w *world) network() ec2.Pool {
	w.t.Helper()
	ctx := w.t.Context()
	images, err := w.cloud.DescribeImages(ctx, &ec2api.DescribeImagesInput{Filters: []types.Filter{{Name: sdk.String("architecture"), Values: []string{image}}}})
	check(w.t, err)
	subnets, err := w.cloud.DescribeSubnets(ctx, &ec2api.DescribeSubnetsInput{})
	check(w.t, err)
	return ec2.Pool{
		Images:        map[string]string{image: *images.Images[0].ImageId},
		RootVolumeGiB: 15, // that of moto's images; without, moto launches one machine and says that a size is missing
		Subnets:       []string{*subnets.Subnets[0].SubnetId, *subnets.Subnets[1].SubnetId},
	}
}

func (w *world) newFleet() *fleet.Fleet {
	w.t.Helper()
	cfg := w.client()
	compute, err := ec2.New(ec2api.NewFromConfig(cfg), w.ec2)
	check(w.t, err)
	records := dynamo.New(dynamodb.NewFromConfig(cfg), dynamo.Options{Now: w.now})
	messages := w.newQueue()
	w.ensure = fleet.Together(records.Ensure, messages.Ensure, compute.Ensure)
	f, err := fleet.New(fleet.Options{
		Store: records, Queue: messages, Compute: compute, GitHub: w.github,
		Pools: map[string]fleet.Pool{"default": {
			ResourceClasses: []string{"large"}, UsageClasses: lifecycle.UsageClasses, Policy: lifecycle.DefaultPolicy(),
		}},
		Classes:         map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}},
		TemplateVersion: compute.Template, Exhausted: compute.Exhausted,
		Ensure:  w.ensure,
		Replica: "a", HostKey: func(id string) string { return roleID + ":" + id }, Rand: rand.New(rand.NewPCG(1, 2)),
	})
	check(w.t, err)
	return f
}

// prepare makes what the fleet needs in AWS, and without the sweeps of a refresh.
func (w *world) prepare() {
	w.t.Helper()
	_, err := w.ensure(w.t.Context(), false)
	check(w.t, err)
	w.made = true
}

func (w *world) newQueue() *sqs.Queue {
	w.t.Helper()
	return sqs.New(sqsapi.NewFromConfig(w.client()), sqs.Options{Queues: []lifecycle.QueueName{
		{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}, {ResourceClass: "large", UsageClass: lifecycle.UsageSpot},
	}})
}

// client is the configuration of one client, which has a budget of tries of its own.
func (w *world) client() sdk.Config {
	c := w.config
	c.Region = w.region
	c.Retryer = func() sdk.Retryer {
		return aws.NewRetryer(aws.RetryOptions{Tries: w.tries, FirstWait: time.Millisecond, LongestWait: 10 * time.Millisecond})
	}
	return c
}

func (w *world) now() time.Time { return w.began.Add(w.ahead) }

// withoutWaiting has an empty queue answer at once.
func withoutWaiting(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err) // it was read before
	}
	body = bytes.Replace(body, []byte(`"WaitTimeSeconds":1`), []byte(`"WaitTimeSeconds":0`), 1)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	forward(r).Write(rw)
}

func (w *world) requests(runs ...string) []lifecycle.Request {
	w.t.Helper()
	var all []lifecycle.Request
	for _, run := range runs {
		got, err := w.truth.RequestsOfRun(context.Background(), repository, run)
		check(w.t, err)
		all = append(all, got...)
	}
	return all
}

func living(all []types.Instance) []string {
	var ids []string
	for _, i := range all {
		if i.State.Name == types.InstanceStateNamePending || i.State.Name == types.InstanceStateNameRunning {
			ids = append(ids, *i.InstanceId)
		}
	}
	slices.SortFunc(ids, strings.Compare)
	return ids
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
