package firstaccount

import (
	"context"
	"errors"
	"slices"

	service "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/sqs"
)

var queuesCheck = check{
	name: "queues",
	does: "makes two queues and sends a message",
	assumptions: []findings.Assumption{
		{
			Name:     "queues-made",
			Text:     "Refresh makes the queues with its own policy.",
			ReliedOn: "internal/queue/sqs/ensure.go; internal/aws/policy.go: OnQueues",
		},
		{
			Name:     "messages-allowed",
			Text:     "The policy of controld allows to send a message, to receive it, to put it back and to delete it.",
			ReliedOn: "internal/queue/sqs/sqs.go; internal/aws/policy.go: OnQueues",
		},
	},
	run: checkQueues,
}

func checkQueues(ctx context.Context, s *session) error {
	name := lifecycle.QueueName{ResourceClass: "small", UsageClass: lifecycle.UsageOnDemand}
	queue := sqs.New(service.NewFromConfig(s.fleet.cfg), sqs.Options{Prefix: s.id, Queues: []lifecycle.QueueName{name}})
	_, err := s.must(ctx, s.Times.Settle, "the queues", func() (bool, error) {
		_, err := queue.Ensure(ctx, false)
		if aws.ClassOf(err) == aws.Denied && !s.settled() {
			s.Say("not made, which may be since the roles are new: %v", err)
			return false, nil
		}
		return err == nil, err
	})
	if ctx.Err() != nil {
		return errInterrupted
	}
	s.Decide("queues-made", err == nil, "%s", outcome(err))
	if err != nil {
		return nil
	}
	message := lifecycle.Message{InstanceID: "i-00000000000000000", ResourceClass: name.ResourceClass, UsageClass: name.UsageClass, HostKey: s.id, Pool: poolFleet, Assignment: 1}
	err = queue.Send(ctx, message)
	if err == nil {
		err = s.receive(ctx, queue, name)
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	s.Decide("messages-allowed", err == nil, "%s", outcome(err))
	return nil
}

// receive takes the message, puts it back, takes it again and deletes it.
func (s *session) receive(ctx context.Context, queue *sqs.Queue, name lifecycle.QueueName) error {
	for _, finish := range []func(context.Context, lifecycle.QueueName, ...string) error{queue.Return, queue.Delete} {
		var got []lifecycle.Delivery
		if _, err := s.must(ctx, s.Times.Settle, "the message", func() (_ bool, err error) {
			got, err = queue.Receive(ctx, name, 1)
			return len(got) > 0, err
		}); err != nil {
			return err
		}
		if err := finish(ctx, name, got[0].Handle); err != nil {
			return err
		}
	}
	return nil
}

// findQueues asks a list that may be a minute old: a deleted queue may be in it.
func (s *session) findQueues(ctx context.Context, prefix string, r *remains) error {
	pages := service.NewListQueuesPaginator(s.admin.sqs, &service.ListQueuesInput{QueueNamePrefix: str(prefix + "-")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return aws.Wrap("look for queues", err)
		}
		for _, url := range page.QueueUrls {
			if !slices.Contains(s.deleted, url) {
				r.queues = append(r.queues, url)
			}
		}
	}
	return nil
}

func (s *session) removeQueues(ctx context.Context, urls []string) error {
	var errs []error
	for _, url := range urls {
		_, err := s.admin.sqs.DeleteQueue(ctx, &service.DeleteQueueInput{QueueUrl: &url})
		if err = unlessGone("delete queue "+url, err); err == nil {
			s.deleted = append(s.deleted, url)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
