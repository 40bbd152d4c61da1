package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/hint"
)

// Send puts each message into the queue of its class. A call whose answer is
// lost is repeated, so a message may come twice.
func (q *Queue) Send(ctx context.Context, messages ...lifecycle.Message) error {
	bodies := map[string][]string{}
	for _, m := range messages {
		body, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("send message of %s: %w", m.InstanceID, err)
		}
		name := q.name(hint.QueueOf(m))
		bodies[name] = append(bodies[name], string(body))
	}
	var errs []error
	for name, bodies := range bodies {
		errs = append(errs, q.send(ctx, name, bodies))
	}
	return errors.Join(errs...)
}

func (q *Queue) send(ctx context.Context, name string, bodies []string) error {
	return q.inBatches(ctx, batch{
		what: "send to", operation: "SendMessageBatch", queue: name, entries: len(bodies),
		call: func(url string, entries []int) ([]types.BatchResultErrorEntry, error) {
			in := &sqs.SendMessageBatchInput{QueueUrl: &url}
			for _, i := range entries {
				in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: id(i), MessageBody: &bodies[i]})
			}
			out, err := q.client.SendMessageBatch(ctx, in)
			if err != nil {
				return nil, err
			}
			return out.Failed, nil
		},
	})
}
