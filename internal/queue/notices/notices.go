// Package notices receives what EC2 announces about machines: events that a rule of
// EventBridge puts into a queue of Amazon SQS, <prefix>-notices. A rule matches
// the machines of the whole account, so most notices may be about machines of others.
//
// A message that cannot be parsed is logged and deleted. It is not put aside:
// EventBridge keeps the form of its events, and any other sender knows what it sent.
package notices

import (
	"context"
	"errors"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// ReceiveWait is how long a receive waits for a first notice: the longest that SQS knows, so that an
	// empty queue costs the fewest calls. The HTTP client must wait longer.
	ReceiveWait = 20 * time.Second
	// atOnce is the most that SQS hands out in one answer.
	atOnce = 10
	// visibility is how long a received notice is hidden: more than ten of them take to be worked on. An
	// interruption that was not acknowledged is then received again well before it happens.
	visibility = 30 * time.Second
	// retention is how long a notice is kept that is not received: what was
	// announced before that has happened.
	retention = 15 * time.Minute
)

// Options of New. The zero value takes the defaults.
type Options struct {
	// Prefix begins the name of the queue; default "remuda".
	Prefix string
	// Logger gets the notices that cannot be parsed; default none.
	Logger hclog.Logger
}

// Queue is the queue of notices.
type Queue struct {
	client *sqs.Client
	name   string
	log    hclog.Logger

	mu  sync.Mutex
	url string // once it was asked for
}

// New returns the queue behind the client. It makes no call: Ensure makes the queue.
func New(client *sqs.Client, o Options) *Queue {
	if o.Prefix == "" {
		o.Prefix = "remuda"
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	return &Queue{client: client, name: o.Prefix + "-notices", log: o.Logger}
}

// Receive hands out at most ten notices, and waits up to ReceiveWait for a first
// one. What is no notice, or none that matters, is deleted.
func (q *Queue) Receive(ctx context.Context) ([]lifecycle.NoticeDelivery, error) {
	what := "receive from queue " + q.name
	url, err := q.find(ctx)
	if err != nil {
		return nil, q.failed(what, err)
	}
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: atOnce, VisibilityTimeout: seconds(visibility), WaitTimeSeconds: seconds(ReceiveWait),
	})
	if err != nil {
		return nil, q.failed(what, err)
	}
	var notices []lifecycle.NoticeDelivery
	var others []string
	for _, m := range out.Messages {
		handle := sdk.ToString(m.ReceiptHandle)
		n, err := Parse([]byte(sdk.ToString(m.Body)))
		switch {
		case errors.Is(err, ErrIgnored):
			q.log.Debug("deleting a notice", logkey.Message, sdk.ToString(m.MessageId), logkey.Reason, err)
		case err != nil:
			q.log.Warn("deleting a message that is no notice of EC2", logkey.Queue, q.name, logkey.Message, sdk.ToString(m.MessageId), logkey.Error, err)
		default:
			notices = append(notices, lifecycle.NoticeDelivery{Notice: n, Handle: handle})
			continue
		}
		others = append(others, handle)
	}
	if len(others) > 0 {
		if err := q.Delete(ctx, others...); err != nil {
			q.log.Warn("notices not deleted, they come again", logkey.Queue, q.name, logkey.Count, len(others), logkey.Error, err)
		}
	}
	return notices, nil
}

// Delete removes deliveries, at most ten; an outdated handle is no error. One
// that SQS does not delete comes again, and is worked on again.
func (q *Queue) Delete(ctx context.Context, handles ...string) error {
	what := "delete from queue " + q.name
	url, err := q.find(ctx)
	if err != nil {
		return q.failed(what, err)
	}
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
	for i := range handles {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: sdk.String(string(rune('a' + i))), ReceiptHandle: &handles[i]})
	}
	out, err := q.client.DeleteMessageBatch(ctx, in)
	if err != nil {
		return q.failed(what, err)
	}
	for _, f := range out.Failed {
		q.log.Debug("notice not deleted, it comes again", logkey.Queue, q.name, logkey.Code, sdk.ToString(f.Code), logkey.Error, sdk.ToString(f.Message))
	}
	return nil
}

// find asks for the URL of the queue, once.
func (q *Queue) find(ctx context.Context) (string, error) {
	q.mu.Lock()
	url := q.url
	q.mu.Unlock()
	if url != "" {
		return url, nil
	}
	out, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &q.name})
	if err != nil {
		return "", err
	}
	q.know(*out.QueueUrl)
	return *out.QueueUrl, nil
}

func (q *Queue) know(url string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.url = url
}

// isMissing: there is no such queue.
func isMissing(err error) bool {
	switch aws.Code(err) {
	case "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue":
		return true
	}
	return false
}

// failed says what to do when the queue is missing, and has it asked for again.
func (q *Queue) failed(what string, err error) error {
	if !isMissing(err) {
		return aws.Wrap(what, err)
	}
	q.know("")
	return aws.Refused(what, err, "run Refresh, which makes it, or leave aws.notices out")
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }
