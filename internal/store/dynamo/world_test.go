package dynamo_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

const (
	repository = "acme/site"
	runID      = "4711"
	// secret is what no error and no log may tell.
	secret = "do-not-print-me"
	// jobPool is the pool of newJob.
	jobPool = "small-jobs"
)

// began is now, in whole seconds: rows that have expired by the real clock may
// be removed.
var began = time.Now().UTC().Truncate(time.Second)

// world is a store behind a proxy, with what it logged.
type world struct {
	*dynamo.Store
	proxy  *awstest.Proxy
	client *dynamodb.Client // past the proxy
	log    *bytes.Buffer
	tags   *tags // of tables that are not there yet
}

func newWorld(t testing.TB) world {
	t.Helper()
	w := world{client: open(t, dynamo.Options{}), proxy: awstest.NewProxy(t, awstest.DynamoDB(t)), log: new(bytes.Buffer)}
	w.Store = w.replica(t)
	return w
}

// replica is another process's store on the same tables.
func (w world) replica(t testing.TB) *dynamo.Store {
	t.Helper()
	return dynamo.New(newClient(t, w.proxy.URL()), dynamo.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: w.log})})
}

// operations are the calls that came so far, in their order.
func (w world) operations() []string {
	var names []string
	for _, c := range w.proxy.Calls() {
		names = append(names, c.Operation)
	}
	return names
}

// since is what was called while do ran.
func (w world) since(t *testing.T, do func() error) []string {
	t.Helper()
	before := len(w.operations())
	if err := do(); err != nil {
		t.Fatal(err)
	}
	return w.operations()[before:]
}

func (w world) create(t testing.TB, records ...lifecycle.Record) {
	t.Helper()
	for _, r := range records {
		if err := w.CreateInstance(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// set changes attributes of a row as a person at the console might.
func (w world) set(t testing.TB, table string, key map[string]string, attribute string, value types.AttributeValue) {
	t.Helper()
	in := &dynamodb.UpdateItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{},
		ExpressionAttributeNames:  map[string]string{"#a": attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":a": value},
	}
	expression := "SET #a = :a"
	in.UpdateExpression = &expression
	for name, value := range key {
		in.Key[name] = text(value)
	}
	if _, err := w.client.UpdateItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// forward asks DynamoDB Local, from a hook of the proxy.
type forward = func(*http.Request) *awstest.Answer

// item is a row as it is stored.
func (w world) item(t testing.TB, table string, key map[string]string) map[string]types.AttributeValue {
	t.Helper()
	in := &dynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{}}
	for name, value := range key {
		in.Key[name] = text(value)
	}
	out, err := w.client.GetItem(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// plain is an item that can be compared and read.
func plain(it map[string]types.AttributeValue) map[string]any {
	var values map[string]any
	if err := attributevalue.UnmarshalMap(it, &values); err != nil {
		panic(err) // into any, everything can be
	}
	return values
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// hostKeyOf is of the length that host keys have in AWS.
func hostKeyOf(n int) string { return fmt.Sprintf("AROAEXAMPLEEXAMPLE123:i-%017x", n) }

// pooledRecord is a host that waits in the pool, with all that such a host has.
func pooledRecord(hostKey string) lifecycle.Record {
	return lifecycle.Record{
		HostKey: hostKey, InstanceID: "i-0123456789abcdef0", Pool: "default", State: lifecycle.StateIdle, Version: 1,
		Repository: repository, Assignment: 2, Threshold: began.Add(5 * time.Minute), MaxRuntime: 6 * time.Hour,
		DueAt: began.Add(5 * time.Minute),
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: "c6i.large", CPU: 2,
			MemoryMiB: 4096, Arch: "x86_64", Zone: "eu-west-1a",
		},
		TrustKey: repository, Uses: 1, LastRun: "12345678900", TemplateVersion: "7", PooledAt: began,
		LaunchedAt: began, CreatedAt: began, UpdatedAt: began,
		Meter:  "mwyyzwlk,5c,1aao,1cm0,-,-", // once its runner is ready
		Reason: "it is clean and waits for a run of its repository",
	}
}

func claimOf(hostKey, run string) lifecycle.Claim {
	return lifecycle.Claim{
		HostKey: hostKey, Assignment: 2, TrustKey: repository, Now: began, Margin: 30 * time.Second,
		RunID: run, RunAttempt: 1, Repository: repository, RequestID: "4f9c2b6e-7a51-4f0e-9c55-2b1d5e3f8a70", MaxRuntime: time.Hour,
		Labels: []string{"fast"}, Threshold: began.Add(2 * time.Minute), Workflow: "Continuous integration",
		Arrival: arrival.Of(began, began.Add(time.Second), arrival.Wait{QueuedAt: began.Truncate(time.Second)}, nil),
		Registration: &lifecycle.Registration{
			Kind: lifecycle.RegistrationToken, URL: "https://github.com/" + repository, Secret: secret, ExpiresAt: began.Add(time.Hour),
		},
	}
}

func newRequest(id string) lifecycle.Request {
	return lifecycle.Request{
		Repository: repository, RunID: runID, RequestID: id, Version: 1,
		Spec:      lifecycle.Spec{RunAttempt: 1, Count: 1, MinimumCount: 1, Pool: "default", ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand},
		CreatedAt: began, Deadline: began.Add(time.Minute), DueAt: began.Add(time.Minute),
	}
}

// newJob is a job that waits, with all that such a job has.
func newJob(id int64) lifecycle.Job {
	return lifecycle.Job{
		ID: id, Repository: repository, RunID: runID, RunAttempt: 1, Labels: []string{"self-hosted", "linux", "x64", "remuda-small"},
		Pool: jobPool, Scope: repository, State: lifecycle.JobWaiting, QueuedAt: began, Reason: "queued on GitHub: it waits for a turn",
		DueAt: began.Add(time.Minute), Version: 1,
	}
}

// newWebhook is a delivery of a job, to be worked on.
func newWebhook(id string) lifecycle.Webhook {
	return lifecycle.Webhook{
		DeliveryID: id, Action: "queued",
		Job: &lifecycle.WorkflowJob{
			ID: 51234567890, Repository: repository, RunID: "18234567890", RunAttempt: 1,
			Labels: []string{"self-hosted", "linux", "x64", "remuda-small"}, Status: lifecycle.StatusQueued, QueuedAt: began,
		},
		RepositoryID: 123456789, OwnerID: 12345678, ReceivedAt: began, DueAt: began, Version: 1,
	}
}

func newEvent(reason string) lifecycle.Event {
	return lifecycle.Event{
		At: began, InstanceID: "i-a", Repository: repository, RunID: runID, RequestID: "request-1", Assignment: 3,
		Action: lifecycle.ActionReady, From: "created", To: "running", Reason: reason,
	}
}

// everyEvent goes through the pages from a token on.
func everyEvent(t *testing.T, list func(context.Context, lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error), of lifecycle.PageOf,
) (found []lifecycle.Event, next string) {
	t.Helper()
	for {
		page, err := list(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, page.Items...)
		if page.Next == "" || len(page.Items) == 0 {
			return found, of.After
		}
		of.After = page.Next
	}
}

func reasons(found []lifecycle.Event) []string {
	var all []string
	for _, e := range found {
		all = append(all, e.Reason)
	}
	return all
}
