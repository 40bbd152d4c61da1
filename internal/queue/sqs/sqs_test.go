package sqs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/queuetest"
	"github.com/remuda-ci/remuda/internal/queue/sqs"
)

// TestQueue: on moto, as on SQS, the handle of an earlier delivery may work.
func TestQueue(t *testing.T) {
	t.Parallel()
	queuetest.RunInRealTime(t, func(t *testing.T, o queuetest.Options) queuetest.Service {
		proxy := awstest.NewProxy(t, awstest.Moto(t))
		proxy.Handle("sqs", "ReceiveMessage", withoutWait)
		client := api.NewFromConfig(awstest.Config(t, proxy.URL()))
		small := lifecycle.QueueName{ResourceClass: "small", UsageClass: lifecycle.UsageOnDemand}
		smallSpot := lifecycle.QueueName{ResourceClass: "small", UsageClass: lifecycle.UsageSpot}
		q := sqs.New(client, sqs.Options{
			Queues: []lifecycle.QueueName{large, spot, small, smallSpot},
			Logger: o.Logger, Visibility: o.Visibility, Retention: o.Retention,
		})
		if _, err := q.Ensure(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		s := suiteService{t: t, client: client}
		if o.Retention < time.Minute { // which SQS does not know, but moto does
			s.setRetention(o.Retention)
		}
		return queuetest.Service{Queue: q, SendBody: s.sendBody, Loose: true}
	})
}

type suiteService struct {
	t      *testing.T
	client *api.Client
}

func (s suiteService) url(q lifecycle.QueueName) *string {
	out, err := s.client.GetQueueUrl(s.t.Context(), &api.GetQueueUrlInput{
		QueueName: sdk.String(fmt.Sprintf("remuda-%s-%s", q.ResourceClass, q.UsageClass)),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out.QueueUrl
}

func (s suiteService) setRetention(d time.Duration) {
	_, err := s.client.SetQueueAttributes(s.t.Context(), &api.SetQueueAttributesInput{
		QueueUrl: s.url(large), Attributes: map[string]string{"MessageRetentionPeriod": strconv.Itoa(int(d.Seconds()))},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// forbidden in a body. Source: the API reference of SQS, SendMessage.
var forbidden = regexp.MustCompile(`[^\x{9}\x{A}\x{D}\x{20}-\x{D7FF}\x{E000}-\x{FFFD}\x{10000}-\x{10FFFF}]`)

func (s suiteService) sendBody(ctx context.Context, q lifecycle.QueueName, body string) error {
	if body == "" || !utf8.ValidString(body) || forbidden.MatchString(body) {
		return fmt.Errorf("send body %q: %w", body, lifecycle.ErrRefused) // by SQS; moto takes it
	}
	_, err := s.client.SendMessage(ctx, &api.SendMessageInput{QueueUrl: s.url(q), MessageBody: &body})
	return err
}

func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("i-%02d", i)
	}
	return all
}

// TestCallsOfEachMethod is the cost of the port.
func TestCallsOfEachMethod(t *testing.T) {
	t.Parallel()
	w := newQueues(t)
	q := w.another(t) // a replica that has just started
	var deliveries []lifecycle.Delivery
	handles := func(n int) []string {
		var some []string
		for _, d := range deliveries[:n] {
			some = append(some, d.Handle)
		}
		return some
	}
	var messages []lifecycle.Message
	for _, id := range ids(23) {
		messages = append(messages, message(id))
	}
	ctx := t.Context()
	receive := func() error {
		got, err := q.Receive(ctx, large, 10)
		deliveries = append(deliveries, got...)
		return err
	}
	steps := []struct {
		what string
		do   func() error
		want []string
	}{
		{"the first call to a queue", func() error { return q.Send(ctx, messages[0]) }, []string{"GetQueueUrl", "SendMessageBatch"}},
		{"one message", func() error { return q.Send(ctx, messages[1]) }, []string{"SendMessageBatch"}},
		{"21 messages", func() error { return q.Send(ctx, messages[2:]...) }, slices.Repeat([]string{"SendMessageBatch"}, 3)},
		{"no message", func() error { return q.Send(ctx) }, nil},
		{"a receive", receive, []string{"ReceiveMessage"}},
		{"ten handles deleted", func() error { return q.Delete(ctx, large, handles(10)...) }, []string{"DeleteMessageBatch"}},
		{"no handle deleted", func() error { return q.Delete(ctx, large) }, nil},
		{"another receive", receive, []string{"ReceiveMessage"}},
		{"ten handles returned", func() error { return q.Return(ctx, large, handles(20)[10:]...) }, []string{"ChangeMessageVisibilityBatch"}},
		{"no good handle returned", func() error { return q.Return(ctx, large, "", "") }, nil},
	}
	for _, step := range steps {
		before := len(w.proxy.Calls())
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if diff := cmp.Diff(step.want, w.operations(before)); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", step.what, diff)
		}
	}
}

// TestReceiveRequest: what differs in the attributes of the queue does not
// matter to a receive.
func TestReceiveRequest(t *testing.T) {
	t.Parallel()
	w := newQueues(t)
	if _, err := w.Receive(t.Context(), large, 7); err != nil {
		t.Fatal(err)
	}
	calls := w.proxy.Calls()
	var got map[string]any
	if err := json.Unmarshal(calls[len(calls)-1].Body, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "QueueUrl")
	want := map[string]any{"MaxNumberOfMessages": 7.0, "VisibilityTimeout": 30.0, "WaitTimeSeconds": 1.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestOneAnswerHasAMessageOnce(t *testing.T) {
	t.Parallel()
	w := newQueues(t)
	w.send(t, "i-1", "i-2")
	w.proxy.Handle("sqs", "ReceiveMessage", func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		answer := forward(r)
		var got struct{ Messages []any }
		must(json.Unmarshal(answer.Body, &got))
		got.Messages = append(got.Messages, got.Messages...)
		var err error
		answer.Body, err = json.Marshal(got)
		must(err)
		answer.Write(rw)
	})
	got, err := w.Receive(t.Context(), large, 10)
	if err != nil || len(got) != 2 || got[0].Message == got[1].Message {
		t.Errorf("got %v, error %v, want two messages", got, err)
	}
}

func TestMalformedBodiesArePutAside(t *testing.T) {
	t.Parallel()
	w := newQueues(t)
	want := []string{`[]`, `{"id":7}`, `{"resourceClass":"large"}`}
	for _, body := range want {
		w.put(t, largeQueue, body)
	}
	w.send(t, "i-1")
	ids, _ := w.receive(t)
	if diff := cmp.Diff([]string{"i-1"}, ids); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, w.bodies(t, malformedQueue)); diff != "" {
		t.Errorf("put aside (-want +got):\n%s", diff)
	}
	if n := w.attributesOf(t, largeQueue)["ApproximateNumberOfMessagesNotVisible"]; n != "1" {
		t.Errorf("%s messages are in flight, want the good one", n)
	}
	if !strings.Contains(w.log.String(), `queue=remuda-large-on-demand`) || !strings.Contains(w.log.String(), "to=remuda-malformed") {
		t.Errorf("log:\n%s", &w.log)
	}
}

// TestMalformedBodiesThatCannotBePutAside stay in their queue; the good ones
// still come.
func TestMalformedBodiesThatCannotBePutAside(t *testing.T) {
	t.Parallel()
	w := newQueues(t)
	w.remove(t, malformedQueue)
	w.put(t, largeQueue, `{"id":7}`)
	w.send(t, "i-1")
	ids, _ := w.receive(t)
	if diff := cmp.Diff([]string{"i-1"}, ids); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	if n := w.attributesOf(t, largeQueue)["ApproximateNumberOfMessagesNotVisible"]; n != "2" {
		t.Errorf("%s messages are in flight, want both", n)
	}
	if !strings.Contains(w.log.String(), "cannot put a queue message aside") || !strings.Contains(w.log.String(), "remuda-malformed: refused") {
		t.Errorf("log:\n%s", &w.log)
	}
}

// TestGoodMessagesOutliveManyReceives: none ends with the malformed ones.
func TestGoodMessagesOutliveManyReceives(t *testing.T) {
	t.Parallel()
	w := newQueues(t)
	w.send(t, "i-1")
	for range 20 {
		ids, handles := w.receive(t)
		if diff := cmp.Diff([]string{"i-1"}, ids); diff != "" {
			t.Fatalf("received (-want +got):\n%s", diff)
		}
		if err := w.Return(t.Context(), large, handles...); err != nil {
			t.Fatal(err)
		}
	}
}

func TestActionsAreTheCallsThatAreMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ensure(t)
	w.set(t, largeQueue, map[string]string{"VisibilityTimeout": "1"})
	_, err := w.raw.UntagQueue(t.Context(), &api.UntagQueueInput{QueueUrl: ptr(w.urlOf(t, largeQueue)), TagKeys: []string{"remuda:fleet"}})
	must(err)
	w.ensure(t)
	q := w.another(t)
	if err := q.Send(t.Context(), message("i-1")); err != nil {
		t.Fatal(err)
	}
	w.put(t, largeQueue, "{")
	_, handles := w.receive(t)
	if err := q.Return(t.Context(), large, handles...); err != nil {
		t.Fatal(err)
	}
	if err := q.Delete(t.Context(), large, handles...); err != nil {
		t.Fatal(err)
	}
	called, allowed := map[string]bool{}, map[string]bool{}
	for _, c := range w.proxy.Calls() {
		called[c.Action()] = true
	}
	for _, p := range sqs.Actions() {
		allowed[p.Action] = true
		if p.Why == "" || p.Role == "" || p.On == "" {
			t.Errorf("%+v says too little", p)
		}
	}
	if diff := cmp.Diff(allowed, called); diff != "" {
		t.Errorf("called, and not among Actions (+), or the other way round (-):\n%s", diff)
	}
}
