package cost_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ec2api "github.com/aws/aws-sdk-go-v2/service/ec2"
	sqsapi "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	hosttime "github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/queue/sqs"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

const (
	repository = "acme/site"
	prefix     = "remuda"
	region     = "us-east-1"
	roleID     = "AROAEXAMPLEEXAMPLE123" // of the length that role ids have
	requestID  = "4f9c2b6e-7a51-4f0e-9c55-2b1d5e3f8a70"
)

var large = lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}

// began is in the future: rows that have expired by the real clock are removed.
var began = time.Date(2040, 1, 2, 12, 0, 0, 0, time.UTC)

// clock is the only one that the product sees, also in what DynamoDB says of
// its own: an hour passes as fast as the emulators answer.
type clock struct {
	mu sync.Mutex
	at time.Time
	// runs: it is the clock of the bubble that calls it.
	runs bool
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs {
		return time.Now()
	}
	return c.at
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// dated is an HTTP client that gets the clock's date in every answer. In
// bubbles, no connection outlives its call: time stands still in a
// bubble while a goroutine reads from one.
type dated struct {
	sdk.HTTPClient
	clock *clock
	once  bool
}

func (d dated) Do(r *http.Request) (*http.Response, error) {
	r.Close = d.once
	response, err := d.HTTPClient.Do(r)
	if err == nil {
		response.Header.Set("Date", d.clock.now().Format(http.TimeFormat))
	}
	return response, err
}

// world is a fleet in AWS, wired as controld wires it, and what it uses.
type world struct {
	t       testing.TB
	clock   *clock
	meter   *meter
	store   *dynamo.Store
	queue   *sqs.Queue
	compute *ec2.Compute
	fleet   *fleet.Fleet

	// Past the meter: what tests and hosts do.
	reads  *knownReads // of all clients of DynamoDB
	plain  *dynamo.Store
	batch  *batch
	ec2    *ec2api.Client
	image  string
	subnet string
	keys   []string // of the hosts of the run in hand

	// templatesAge is how much older what EC2 said of its templates is than the
	// clock says.
	templatesAge time.Duration
	bubbles      bool // whether bubbles are used in it
	// What job-scoped hosts that run report: whether they have a job, and how
	// many they have begun.
	busy  bool
	begun int
}

func newWorld(t testing.TB, with ...func(*world)) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{at: began}, meter: &meter{}, reads: newKnownReads()}
	for _, change := range with {
		change(w)
	}
	w.store, w.plain, w.batch = w.newStore(w.meter), w.newStore(nil), w.newBatch()
	proxy := awstest.NewProxy(t, awstest.Moto(t))
	ec2gap.Install(proxy)
	counted := awstest.Config(t, proxy.URL(), func(o *aws.Options) { o.Calls = &w.meter.calls })
	counted.APIOptions = append(counted.APIOptions, w.meter.add)
	counted.HTTPClient = w.dated(counted.HTTPClient)
	uncounted := awstest.Config(t, proxy.URL())
	w.ec2 = ec2api.NewFromConfig(uncounted)
	w.findPlace()
	w.queue = sqs.New(sqsapi.NewFromConfig(counted), sqs.Options{
		Queues: []lifecycle.QueueName{large},
		// Moto's clock is the real one: on a busy machine a message would show up again in
		// the middle of a claim.
		Visibility: time.Hour,
	})
	var err error
	w.compute, err = ec2.New(ec2api.NewFromConfig(counted), ec2.Options{
		Prefix: prefix, Region: region, RoleID: roleID, InstanceProfile: "remuda-host",
		Pools: map[string]ec2.Pool{"default": {
			Images: map[string]string{"x86_64": w.image}, Subnets: []string{w.subnet}, RootVolumeGiB: 50,
		}},
		Now: func() time.Time { return w.clock.now().Add(w.templatesAge) },
	})
	w.must(err)
	for _, ensure := range []fleet.Ensure{w.plain.Ensure, w.queue.Ensure, w.compute.Ensure} {
		_, err := ensure(t.Context(), false)
		w.must(err)
	}
	w.fleet = w.newFleet(w.compute)
	// The first events of a replica cost more.
	w.must(w.store.AddEvents(t.Context(), []lifecycle.Event{{
		At: began, Repository: repository, RunID: "0", Action: lifecycle.ActionSettle, Reason: "first",
	}}))
	return w
}

// newFleet is the fleet whose machines are those of compute.
func (w *world) newFleet(compute fleet.Compute, with ...func(*fleet.Options)) *fleet.Fleet {
	w.t.Helper()
	o := fleet.Options{
		Store: w.store, Queue: w.queue, Compute: compute, GitHub: github{w.clock},
		Pools: map[string]fleet.Pool{"default": {
			Name: "default", ResourceClasses: []string{"large"},
			UsageClasses: []lifecycle.UsageClass{lifecycle.UsageOnDemand}, Policy: lifecycle.DefaultPolicy(),
		}},
		Classes:         map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}},
		TemplateVersion: w.compute.Template, Exhausted: w.compute.Exhausted,
		HostKey: hostKey, Replica: "controld-0", Rand: rand.New(rand.NewPCG(1, 2)),
	}
	for _, change := range with {
		change(&o)
	}
	f, err := fleet.New(o)
	w.must(err)
	return f
}

// newStore is the store, counted by the meter unless it is nil.
func (w *world) newStore(m *meter) *dynamo.Store {
	w.t.Helper()
	return dynamo.New(dynamodb.NewFromConfig(w.storeConfig(m)), dynamo.Options{Now: w.clock.now})
}

func (w *world) storeConfig(m *meter) sdk.Config {
	w.t.Helper()
	config := awstest.Config(w.t, awstest.DynamoDB(w.t), func(o *aws.Options) {
		if m != nil {
			o.Calls = &m.calls
		}
	})
	config.HTTPClient = w.dated(w.reads.through(config.HTTPClient))
	if m != nil {
		config.APIOptions = append(config.APIOptions, m.add)
	}
	return config
}

func (w *world) dated(c sdk.HTTPClient) sdk.HTTPClient { return dated{c, w.clock, w.bubbles} }

// findPlace finds an image and a subnet: moto has some from the start.
func (w *world) findPlace() {
	w.t.Helper()
	images, err := w.ec2.DescribeImages(w.t.Context(), &ec2api.DescribeImagesInput{})
	w.must(err)
	for _, image := range images.Images {
		if image.Architecture == "x86_64" {
			w.image = *image.ImageId
		}
	}
	subnets, err := w.ec2.DescribeSubnets(w.t.Context(), &ec2api.DescribeSubnetsInput{})
	w.must(err)
	w.subnet = *subnets.Subnets[0].SubnetId
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func hostKey(instanceID string) string { return roleID + ":" + instanceID }

func instanceID(n int) string { return fmt.Sprintf("i-%017x", n) }

// pooled is a host that waits in the pool, with all that such a host has.
func (w *world) pooled(instanceID string) lifecycle.Record {
	now := w.clock.now()
	return lifecycle.Record{
		HostKey: hostKey(instanceID), InstanceID: instanceID, Pool: "default", State: lifecycle.StateIdle, Version: 1,
		Repository: repository, Assignment: 2, Threshold: now.Add(5 * time.Minute), MaxRuntime: 6 * time.Hour,
		DueAt: now.Add(5 * time.Minute),
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: "c6i.large", CPU: 2,
			MemoryMiB: 4096, Arch: "x86_64", Zone: "us-east-1a",
		},
		Meter:    hosttime.Meter(hosttime.Cycle{From: hosttime.At(now) - 5000, PooledAt: hosttime.At(now)}.String()),
		TrustKey: repository, Uses: 1, TemplateVersion: "7", PooledAt: now,
		LaunchedAt: now, CreatedAt: now, UpdatedAt: now, Reason: "it is clean and waits for a run of its repository",
	}
}

// create writes hosts with their reports, past the meter.
func (w *world) create(records ...lifecycle.Record) {
	w.t.Helper()
	w.written(len(records), func(ctx context.Context, s *dynamo.Store, n int) error {
		r := records[n]
		if err := s.CreateInstance(ctx, r); err != nil {
			return err
		}
		return s.ForHost(r.HostKey).PutReport(ctx, w.report(r))
	})
}

// together does n things at once.
func (w *world) together(n int, do func(ctx context.Context, n int) error) {
	w.t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = do(w.t.Context(), i) })
	}
	wg.Wait()
	w.must(errors.Join(errs...))
}

// drive steps an operation of a run to its end. While it waits the hosts that
// serve the run, or did, answer; ready says from when on.
func (w *world) drive(op fleet.Op, run string, ready time.Time) {
	w.t.Helper()
	for {
		p, err := op.Step(w.t.Context(), w.clock.now())
		w.must(err)
		if p.Done {
			return
		}
		if p.Wait > 0 {
			w.pass(p.Wait)
			if !w.clock.now().Before(ready) {
				w.serve(run)
				w.answer()
			}
		}
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	if w.clock.runs {
		time.Sleep(d)
		return
	}
	w.clock.set(w.clock.now().Add(d))
}

// answer lets every host do what its record says, and report it.
func (w *world) answer() {
	w.t.Helper()
	records, err := w.plain.Instances(w.t.Context(), w.keys)
	w.must(err)
	w.written(len(records), func(ctx context.Context, s *dynamo.Store, n int) error {
		return s.ForHost(records[n].HostKey).PutReport(ctx, w.report(records[n]))
	})
}

func (w *world) report(r lifecycle.Record) lifecycle.Report {
	p := lifecycle.Report{
		HostKey: r.HostKey, HeartbeatAt: w.clock.now(), BootID: bootID, AgentVersion: "1.0.0", Assignment: r.Assignment,
		Signal: lifecycle.SignalRegOK,
	}
	if r.State == lifecycle.StateIdle && r.Standby == nil {
		p.Signal = lifecycle.SignalRemoveRegOK
	} else {
		p.RegisteredAt = w.clock.now()
	}
	if r.State == lifecycle.StateRunning && r.JobsOf != "" {
		p.Busy, p.Jobs = w.busy, w.begun
	}
	return p
}

// serve lets the hosts of a run answer from now on.
func (w *world) serve(run string) {
	w.t.Helper()
	for page := (lifecycle.PageOf{}); ; {
		got, err := w.plain.InstancesOfRun(w.t.Context(), run, page)
		w.must(err)
		for _, r := range got.Items {
			if !slices.Contains(w.keys, r.HostKey) {
				w.keys = append(w.keys, r.HostKey)
			}
		}
		if got.Next == "" {
			return
		}
		page.After = got.Next
	}
}

// github hands out tokens; nothing is registered there.
type github struct{ clock *clock }

func (g github) token(kind lifecycle.RegistrationKind) (lifecycle.Registration, error) {
	return lifecycle.Registration{
		Kind: kind, URL: "https://github.com/" + repository, Secret: "AABBCCDDEEFFGGHHIIJJKKLLMMNNO",
		ExpiresAt: g.clock.now().Add(time.Hour),
	}, nil
}

func (g github) RegistrationToken(context.Context, string) (lifecycle.Registration, error) {
	return g.token(lifecycle.RegistrationToken)
}

func (g github) RemoveToken(context.Context, string) (lifecycle.Registration, error) {
	return g.token(lifecycle.RegistrationRemove)
}

func (github) FindRunner(context.Context, string, string) (lifecycle.Runner, error) {
	return lifecycle.Runner{}, lifecycle.ErrNotFound
}

func (github) DeleteRunner(context.Context, string, int64) error { return nil }

func (github) SetLabels(context.Context, string, int64, []string) error { return nil }

func (github) Runners(context.Context, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	return lifecycle.Page[lifecycle.Runner]{}, nil
}
