package notices_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	api "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/queue/notices"
)

const queueName = "remuda-notices"

// world is a queue of notices on moto behind a proxy.
type world struct {
	*notices.Queue
	t     *testing.T
	log   bytes.Buffer
	waits []int // of the receives
	raw   *api.Client

	proxyURL string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	proxy := awstest.NewProxy(t, awstest.Moto(t))
	w := &world{t: t, raw: api.NewFromConfig(awstest.Config(t, awstest.Moto(t)))}
	proxy.Handle("sqs", "ReceiveMessage", func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		body, err := io.ReadAll(r.Body)
		var in map[string]any
		if err == nil {
			err = json.Unmarshal(body, &in)
		}
		if err != nil {
			panic(err)
		}
		w.waits = append(w.waits, int(in["WaitTimeSeconds"].(float64)))
		r.Body = io.NopCloser(strings.NewReader(strings.Replace(string(body), `"WaitTimeSeconds":20`, `"WaitTimeSeconds":0`, 1)))
		forward(r).Write(rw)
	})
	w.proxyURL = proxy.URL()
	w.open(awstest.Config(t, proxy.URL()))
	return w
}

// open makes the queue with a client of this configuration.
func (w *world) open(c sdk.Config) {
	w.Queue = notices.New(api.NewFromConfig(c), notices.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &w.log})})
}

func (w *world) ensure(dryRun bool) []resources.Resource {
	w.t.Helper()
	changes, err := w.Ensure(w.t.Context(), dryRun)
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

func (w *world) url() *string {
	w.t.Helper()
	out, err := w.raw.GetQueueUrl(w.t.Context(), &api.GetQueueUrlInput{QueueName: sdk.String(queueName)})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.QueueUrl
}

func (w *world) attributes() map[string]string {
	w.t.Helper()
	out, err := w.raw.GetQueueAttributes(w.t.Context(), &api.GetQueueAttributesInput{
		QueueUrl: w.url(), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Attributes
}

func (w *world) send(bodies ...string) {
	w.t.Helper()
	for _, body := range bodies {
		if _, err := w.raw.SendMessage(w.t.Context(), &api.SendMessageInput{QueueUrl: w.url(), MessageBody: &body}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func interruption(instanceID string) string {
	return fmt.Sprintf(`{"version":"0","id":"x","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2",`+
		`"account":"123456789012","time":"2026-03-02T12:00:00Z","region":"us-east-1","resources":[],`+
		`"detail":{"instance-id":%q,"instance-action":"terminate"}}`, instanceID)
}

// TestNotices: what is sound is handed out until it is deleted, and the rest is
// deleted at once.
func TestNotices(t *testing.T) {
	w := newWorld(t)
	w.ensure(false)
	w.send(interruption("i-00000001"), "no event", strings.Replace(interruption("i-00000002"), "aws.ec2", "aws.s3", 1), interruption("i-00000003"))
	got, err := w.Receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	heard := map[string]notice.Kind{}
	var handles []string
	for _, d := range got {
		heard[d.Notice.InstanceID] = d.Notice.Kind
		handles = append(handles, d.Handle)
	}
	if diff := cmp.Diff(map[string]notice.Kind{"i-00000001": "interruption", "i-00000003": "interruption"}, heard); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
	if !strings.Contains(w.log.String(), "deleting a message that is no notice of EC2") {
		t.Errorf("the malformed message was not logged: %s", &w.log)
	}
	hidden := w.attributes()["ApproximateNumberOfMessagesNotVisible"]
	if hidden != "2" {
		t.Errorf("%s messages are hidden, want the two notices", hidden)
	}
	for range 2 { // an outdated handle is no error
		if err := w.Delete(t.Context(), handles...); err != nil {
			t.Fatal(err)
		}
	}
	if left := w.attributes(); left["ApproximateNumberOfMessagesNotVisible"] != "0" || left["ApproximateNumberOfMessages"] != "0" {
		t.Errorf("left over: %v", left)
	}
	if again, err := w.Receive(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("again: %v, %v", again, err)
	}
	if diff := cmp.Diff([]int{20, 20}, w.waits); diff != "" {
		t.Errorf("seconds that a receive waits (-want +got):\n%s", diff)
	}
}

func TestEnsure(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Receive(t.Context()); !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), "run Refresh") {
		t.Errorf("without a queue: %v", err)
	}
	created := []resources.Resource{{Kind: "queue", Name: queueName, Change: resources.Created, Detail: "it was missing; notices are kept for 15m0s, encrypted"}}
	for _, test := range []struct {
		what string
		dry  bool
		want []resources.Resource
	}{{"a dry run", true, created}, {"a run", false, created}, {"another", false, nil}, {"a dry run after it", true, nil}} {
		if diff := cmp.Diff(test.want, w.ensure(test.dry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.what, diff)
		}
	}
	found := w.attributes()
	if found["MessageRetentionPeriod"] != "900" || found["SqsManagedSseEnabled"] != "true" {
		t.Errorf("attributes: %v", found)
	}
	account := strings.Split(found["QueueArn"], ":")[4]
	for _, says := range []string{`"Service":"events.amazonaws.com"`, `"Action":"sqs:SendMessage"`, `"aws:SourceArn":"arn:aws:events:us-east-1:` + account + `:rule/*"`} {
		if !strings.Contains(strings.ReplaceAll(found["Policy"], " ", ""), says) {
			t.Errorf("the policy does not say %s: %s", says, found["Policy"])
		}
	}
}

func TestEnsureCorrects(t *testing.T) {
	w := newWorld(t)
	w.ensure(false)
	right := w.attributes()
	open := strings.Replace(right["Policy"], "events.amazonaws.com", "sns.amazonaws.com", 1)
	if _, err := w.raw.SetQueueAttributes(t.Context(), &api.SetQueueAttributesInput{
		QueueUrl: w.url(), Attributes: map[string]string{"Policy": open, "MessageRetentionPeriod": "60"},
	}); err != nil {
		t.Fatal(err)
	}
	want := []resources.Resource{{Kind: "queue", Name: queueName, Change: resources.Updated,
		Detail: "notices were kept for 60 s, not for 900; EventBridge was not let write to it, or others were"}}
	for _, dry := range []bool{true, false} {
		if diff := cmp.Diff(want, w.ensure(dry)); diff != "" {
			t.Errorf("dry run %v (-want +got):\n%s", dry, diff)
		}
	}
	got := w.attributes()
	if got["Policy"] != right["Policy"] || got["MessageRetentionPeriod"] != "900" {
		t.Errorf("corrected to %v", got)
	}
}

// TestAKeyOfTheOwnerStays: docs/iam says what the policy of that key must allow.
func TestAKeyOfTheOwnerStays(t *testing.T) {
	w := newWorld(t)
	w.ensure(false)
	policy := w.attributes()["Policy"] // moto forgets it with each change that does not name it
	if _, err := w.raw.SetQueueAttributes(t.Context(), &api.SetQueueAttributesInput{
		QueueUrl: w.url(), Attributes: map[string]string{"SqsManagedSseEnabled": "false", "KmsMasterKeyId": "alias/ours", "Policy": policy},
	}); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		if changes := w.ensure(dry); len(changes) > 0 {
			t.Errorf("dry run %v: %v", dry, changes)
		}
	}
	if found := w.attributes(); found["KmsMasterKeyId"] != "alias/ours" || found["SqsManagedSseEnabled"] != "false" {
		t.Errorf("attributes: %v", found)
	}
}

// SQS answers a receive after up to 20 s, which is longer than other calls may take.
func TestAReceiveMayTakeLonger(t *testing.T) {
	w := newWorld(t)
	c := awstest.Config(t, w.proxyURL)
	c.HTTPClient = awshttp.NewBuildableClient().WithTimeout(time.Nanosecond)
	if _, err := api.NewFromConfig(c).ListQueues(t.Context(), &api.ListQueuesInput{}); err == nil {
		t.Error("an ordinary call was answered within a nanosecond")
	}
	w.open(c)
	w.ensure(false)
	if _, err := w.Receive(t.Context()); err != nil {
		t.Error(err)
	}
}
