package sqs

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/hint"
)

// Delete removes deliveries; an unknown or outdated handle is no error.
func (q *Queue) Delete(ctx context.Context, name lifecycle.QueueName, handles ...string) error {
	if err := hint.CheckHandles("delete messages", handles); err != nil {
		return err
	}
	return q.delete(ctx, q.name(name), handles)
}

func (q *Queue) delete(ctx context.Context, name string, handles []string) error {
	handles = proper(handles)
	return q.inBatches(ctx, batch{
		what: "delete from", operation: "DeleteMessageBatch", queue: name, entries: len(handles), forgives: isOutdated,
		call: func(url string, entries []int) ([]types.BatchResultErrorEntry, error) {
			in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
			for _, i := range entries {
				in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: id(i), ReceiptHandle: &handles[i]})
			}
			out, err := q.client.DeleteMessageBatch(ctx, in)
			if err != nil {
				return nil, err
			}
			return out.Failed, nil
		},
	})
}

// Return makes deliveries visible at once; an unknown or outdated handle is no error.
func (q *Queue) Return(ctx context.Context, name lifecycle.QueueName, handles ...string) error {
	if err := hint.CheckHandles("return messages", handles); err != nil {
		return err
	}
	handles = proper(handles)
	return q.inBatches(ctx, batch{
		what: "return to", operation: "ChangeMessageVisibilityBatch", queue: q.name(name), entries: len(handles), forgives: isOutdated,
		call: func(url string, entries []int) ([]types.BatchResultErrorEntry, error) {
			in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url}
			for _, i := range entries {
				in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
					Id: id(i), ReceiptHandle: &handles[i], VisibilityTimeout: 0,
				})
			}
			out, err := q.client.ChangeMessageVisibilityBatch(ctx, in)
			if err != nil {
				return nil, err
			}
			return out.Failed, nil
		},
	})
}

// proper are the handles that may be some, each once: SQS refuses a whole batch
// for one that is empty or there twice.
func proper(handles []string) []string {
	handles = slices.Compact(slices.Sorted(slices.Values(handles)))
	return slices.DeleteFunc(handles, func(h string) bool { return h == "" })
}

// isOutdated: the handle of an entry is of no message, or of one that others may have by now. SQS says so in
// one way for a delete and another for a return; nothing else of an entry could be an invalid value.
func isOutdated(err error) bool {
	return aws.ClassOf(err) == aws.Gone || aws.Code(err) == "InvalidParameterValue"
}
