package sqs

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/remuda-ci/remuda/internal/aws"
)

// at makes a call to a queue. Its URL is asked for once; when the queue turns out to be missing, once more,
// since it may have been made again elsewhere. What is the verb, such as "receive from".
func (q *Queue) at(ctx context.Context, what, name string, call func(url string) error) error {
	if url, known := q.urls.Load(name); known {
		err := call(url.(string))
		if !isMissing(err) {
			return q.failed(what, name, err)
		}
	}
	url, err := q.find(ctx, name)
	if err == nil {
		err = call(url)
	}
	if isMissing(err) {
		q.urls.Delete(name)
	}
	return q.failed(what, name, err)
}

// find asks for the URL of a queue.
func (q *Queue) find(ctx context.Context, name string) (string, error) {
	out, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return "", err
	}
	q.urls.Store(name, *out.QueueUrl)
	return *out.QueueUrl, nil
}

// isMissing: there is no such queue. The class alone does not tell it from a
// handle that is of no message any more.
func isMissing(err error) bool {
	switch aws.Code(err) {
	case "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue":
		return true
	}
	return false
}

// failed names the queue, and what to do when it is missing. It is nil for nil.
func (q *Queue) failed(what, name string, err error) error {
	what += " queue " + name
	switch {
	case err == nil:
		return nil
	case isMissing(err):
		return aws.Refused(what, err, fmt.Sprintf(
			"it is not in %s in the account of these credentials: run Refresh, or `controld config check --aws` to see what is missing",
			q.client.Options().Region))
	}
	return aws.Wrap(what, err)
}
