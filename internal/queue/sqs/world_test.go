package sqs_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/sqs"
)

var (
	large = lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
	spot  = lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageSpot}
)

// The full names of the queues of tests.
const (
	largeQueue     = "remuda-large-on-demand"
	spotQueue      = "remuda-large-spot"
	malformedQueue = "remuda-malformed"
)

func message(id string) lifecycle.Message {
	return lifecycle.Message{InstanceID: id, HostKey: id, ResourceClass: large.ResourceClass, UsageClass: large.UsageClass}
}

// world is queues on moto behind a proxy.
type world struct {
	*sqs.Queue
	proxy *awstest.Proxy
	log   bytes.Buffer
	// raw asks moto directly, so that it is not among the calls of the proxy.
	raw *api.Client
}

// newWorld has no queues yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{proxy: awstest.NewProxy(t, awstest.Moto(t)), raw: api.NewFromConfig(awstest.Config(t, awstest.Moto(t)))}
	w.proxy.Handle("sqs", "ReceiveMessage", withoutWait)
	w.Queue = w.another(t)
	return w
}

// another replica, which has asked for nothing yet.
func (w *world) another(t *testing.T) *sqs.Queue {
	return sqs.New(api.NewFromConfig(awstest.Config(t, w.proxy.URL())), sqs.Options{
		Queues: []lifecycle.QueueName{large, spot}, Logger: hclog.New(&hclog.LoggerOptions{Output: &w.log}), Retention: 7 * time.Minute,
	})
}

// newQueues has them.
func newQueues(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.ensure(t)
	return w
}

// withoutWait keeps an empty queue from costing a test a second.
func withoutWait(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	rewrite(r, func(body []byte) []byte {
		return bytes.Replace(body, []byte(`"WaitTimeSeconds":1`), []byte(`"WaitTimeSeconds":0`), 1)
	})
	forward(r).Write(w)
}

func rewrite(r *http.Request, change func([]byte) []byte) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(change(body)))
}

func (w *world) ensure(t *testing.T) {
	t.Helper()
	if _, err := w.Ensure(t.Context(), false); err != nil {
		t.Fatalf("Ensure: %v", err)
	}
}

func (w *world) send(t *testing.T, ids ...string) {
	t.Helper()
	var messages []lifecycle.Message
	for _, id := range ids {
		messages = append(messages, message(id))
	}
	if err := w.Send(t.Context(), messages...); err != nil {
		t.Fatalf("Send: %v", err)
	}
}

// receive takes what is there.
func (w *world) receive(t *testing.T) (ids, handles []string) {
	t.Helper()
	for {
		got, err := w.Receive(t.Context(), large, 10)
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		if len(got) == 0 {
			slices.Sort(ids)
			return ids, handles
		}
		for _, d := range got {
			ids, handles = append(ids, d.Message.InstanceID), append(handles, d.Handle)
		}
	}
}

// operations are what was called since from, in order.
func (w *world) operations(from int) []string {
	var all []string
	for _, c := range w.proxy.Calls()[from:] {
		all = append(all, c.Operation)
	}
	return all
}

// tries are the calls of an operation so far.
func (w *world) tries(operation string) []awstest.Call {
	return slices.DeleteFunc(w.proxy.Calls(), func(c awstest.Call) bool { return c.Operation != operation })
}

// entry of a batch, as far as tests look at it.
type entry struct {
	ID                         string `json:"Id"`
	MessageBody, ReceiptHandle string
}

// failEntries makes an operation fail for some entries, as often as answers
// has codes for: the others are carried out. A code that begins with "Sender"
// is the caller's fault. It returns what each call was for.
func (w *world) failEntries(operation string, bad func(entry) bool, codes ...string) *[][]entry {
	asked := &[][]entry{}
	w.proxy.Handle("sqs", operation, func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		code := ""
		if n := len(*asked); n < len(codes) {
			code = codes[n]
		}
		var failed []map[string]any
		rewrite(r, func(body []byte) []byte {
			var request struct{ Entries []entry }
			var all map[string]any
			must(json.Unmarshal(body, &request))
			must(json.Unmarshal(body, &all))
			*asked = append(*asked, request.Entries)
			var kept []any
			for i, e := range request.Entries {
				if code == "" || !bad(e) {
					kept = append(kept, all["Entries"].([]any)[i])
					continue
				}
				name, senders := strings.CutPrefix(code, "Sender ")
				failed = append(failed, map[string]any{"Id": e.ID, "Code": name, "SenderFault": senders, "Message": "so it is"})
			}
			all["Entries"] = kept
			changed, err := json.Marshal(all)
			must(err)
			return changed
		})
		answer := &awstest.Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: []byte(`{}`)}
		if len((*asked)[len(*asked)-1]) > len(failed) {
			answer = forward(r)
		}
		var result map[string]any
		must(json.Unmarshal(answer.Body, &result))
		if len(failed) > 0 {
			result["Failed"] = failed
		}
		var err error
		answer.Body, err = json.Marshal(result)
		must(err)
		answer.Header.Del("Content-Length")
		answer.Write(rw)
	})
	return asked
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// attributesOf a queue, as moto has them; nil if there is no such queue.
func (w *world) attributesOf(t *testing.T, name string) map[string]string {
	t.Helper()
	url := w.urlOf(t, name)
	if url == "" {
		return nil
	}
	out, err := w.raw.GetQueueAttributes(t.Context(), &api.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes
}

func (w *world) urlOf(t *testing.T, name string) string {
	t.Helper()
	out, err := w.raw.ListQueues(t.Context(), &api.ListQueuesInput{QueueNamePrefix: &name})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range out.QueueUrls {
		if strings.HasSuffix(url, "/"+name) {
			return url
		}
	}
	return ""
}

func (w *world) set(t *testing.T, name string, attributes map[string]string) {
	t.Helper()
	_, err := w.raw.SetQueueAttributes(t.Context(), &api.SetQueueAttributesInput{
		QueueUrl: sdk.String(w.urlOf(t, name)), Attributes: attributes,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) remove(t *testing.T, name string) {
	t.Helper()
	if _, err := w.raw.DeleteQueue(t.Context(), &api.DeleteQueueInput{QueueUrl: sdk.String(w.urlOf(t, name))}); err != nil {
		t.Fatal(err)
	}
}

// put puts a body into a queue as another producer could.
func (w *world) put(t *testing.T, name, body string) {
	t.Helper()
	if _, err := w.raw.SendMessage(t.Context(), &api.SendMessageInput{QueueUrl: sdk.String(w.urlOf(t, name)), MessageBody: &body}); err != nil {
		t.Fatal(err)
	}
}

// bodies of what is in a queue.
func (w *world) bodies(t *testing.T, name string) []string {
	t.Helper()
	var bodies []string
	for {
		out, err := w.raw.ReceiveMessage(t.Context(), &api.ReceiveMessageInput{
			QueueUrl: sdk.String(w.urlOf(t, name)), MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			slices.Sort(bodies)
			return bodies
		}
		for _, m := range out.Messages {
			bodies = append(bodies, *m.Body)
		}
	}
}
