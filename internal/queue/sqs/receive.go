package sqs

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/queue/hint"
)

// maxReceives bounds the calls of one Receive that finds malformed bodies only,
// whatever another producer does.
const maxReceives = 10

// Receive hands out at most limit messages, and waits up to a second for a
// first one. A body that cannot be parsed goes to the queue of such.
func (q *Queue) Receive(ctx context.Context, name lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error) {
	if err := hint.CheckLimit(limit); err != nil {
		return nil, err
	}
	queue := q.name(name)
	for range maxReceives {
		got, err := q.receive(ctx, queue, limit)
		if err != nil {
			return nil, err
		}
		deliveries, malformed := q.parse(queue, got)
		if len(malformed) > 0 {
			q.putAside(ctx, queue, malformed)
		}
		if len(deliveries) > 0 || len(malformed) == 0 {
			return deliveries, nil
		}
	}
	return nil, nil
}

func (q *Queue) receive(ctx context.Context, queue string, limit int) ([]types.Message, error) {
	var got []types.Message
	err := q.all.At(ctx, "receive from", queue, func(url string) error {
		out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: int32(limit),
			VisibilityTimeout: seconds(q.visibility), WaitTimeSeconds: seconds(receiveWait),
		})
		if err == nil {
			got = out.Messages
		}
		return err
	})
	return got, err
}

// parse tells good messages from malformed ones, each once: SQS may have the same one in an answer twice.
func (q *Queue) parse(queue string, got []types.Message) (good []lifecycle.Delivery, malformed []types.Message) {
	seen := map[string]bool{}
	for _, m := range got {
		id := sdk.ToString(m.MessageId)
		if seen[id] {
			continue
		}
		seen[id] = true
		message, err := hint.ParseMessage([]byte(sdk.ToString(m.Body)))
		if err != nil {
			q.log.Warn("putting a queue message aside that cannot be parsed", logkey.Queue, queue, logkey.Message, id, logkey.To, q.malformed(), logkey.Error, err)
			malformed = append(malformed, m)
			continue
		}
		good = append(good, lifecycle.Delivery{Message: message, Handle: sdk.ToString(m.ReceiptHandle)})
	}
	return good, malformed
}

// putAside moves messages to the queue of malformed ones, for people to look at. One that cannot be moved
// stays where it is, and is tried again when its visibility has run out.
func (q *Queue) putAside(ctx context.Context, queue string, messages []types.Message) {
	var moved []string
	for _, m := range messages { // each for itself: they may be large
		if err := q.send(ctx, q.malformed(), []string{sdk.ToString(m.Body)}); err != nil {
			q.log.Error("cannot put a queue message aside", logkey.Queue, queue, logkey.Message, sdk.ToString(m.MessageId), logkey.Error, err)
			continue
		}
		moved = append(moved, sdk.ToString(m.ReceiptHandle))
	}
	if err := q.delete(ctx, queue, moved); err != nil {
		q.log.Error("cannot delete queue messages that were put aside", logkey.Queue, queue, logkey.Error, err)
	}
}
