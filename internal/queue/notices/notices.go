// Package notices receives what EC2 announces about machines: events that a rule of
// EventBridge puts into a queue of Amazon SQS, <prefix>-notices. A rule matches
// the machines of the whole account, so most notices may be about machines of others.
//
// A message that cannot be parsed is logged and deleted. It is not put aside:
// EventBridge keeps the form of its events, and any other sender knows what it sent.
package notices

import (
	"cmp"
	"context"
	"errors"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/queue/named"
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
	all    *named.Queues
	name   string
	log    hclog.Logger
}

// New returns the queue behind the client. It makes no call: Ensure makes the queue.
func New(client *sqs.Client, o Options) *Queue {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	all := &named.Queues{Client: client, Missing: "run Refresh, which makes it, or leave aws.notices out"}
	return &Queue{client: client, all: all, name: cmp.Or(o.Prefix, "remuda") + "-notices", log: o.Logger}
}

// Receive hands out at most ten notices, and waits up to ReceiveWait for a first
// one. What is no notice, or none that matters, is deleted.
func (q *Queue) Receive(ctx context.Context) ([]lifecycle.NoticeDelivery, error) {
	var out *sqs.ReceiveMessageOutput
	err := q.all.At(ctx, "receive from", q.name, func(url string) (err error) {
		out, err = q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: atOnce, VisibilityTimeout: seconds(visibility), WaitTimeSeconds: seconds(ReceiveWait),
		})
		return err
	})
	if err != nil {
		return nil, err
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
	in := &sqs.DeleteMessageBatchInput{}
	for i := range handles {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: sdk.String(string(rune('a' + i))), ReceiptHandle: &handles[i]})
	}
	var out *sqs.DeleteMessageBatchOutput
	err := q.all.At(ctx, "delete from", q.name, func(url string) (err error) {
		in.QueueUrl = &url
		out, err = q.client.DeleteMessageBatch(ctx, in)
		return err
	})
	if err != nil {
		return err
	}
	for _, f := range out.Failed {
		q.log.Debug("notice not deleted, it comes again", logkey.Queue, q.name, logkey.Code, sdk.ToString(f.Code), logkey.Error, sdk.ToString(f.Message))
	}
	return nil
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }
