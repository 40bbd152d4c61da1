package main

import (
	"context"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

type (
	queueName = lifecycle.QueueName
	machine   = lifecycle.Machine
	token     = lifecycle.Registration
	runner    = lifecycle.Runner
)

// countedQueue is a queue whose calls are counted.
type countedQueue struct {
	fleet.Queue
	counter
}

func (q countedQueue) Send(ctx context.Context, messages ...lifecycle.Message) (err error) {
	defer q.count("send", &err)
	return q.Queue.Send(ctx, messages...)
}

func (q countedQueue) Receive(ctx context.Context, name queueName, limit int) (_ []lifecycle.Delivery, err error) {
	defer q.count("receive", &err)
	return q.Queue.Receive(ctx, name, limit)
}

func (q countedQueue) Delete(ctx context.Context, name queueName, handles ...string) (err error) {
	defer q.count("delete", &err)
	return q.Queue.Delete(ctx, name, handles...)
}

func (q countedQueue) Return(ctx context.Context, name queueName, handles ...string) (err error) {
	defer q.count("return", &err)
	return q.Queue.Return(ctx, name, handles...)
}

// noticeQueue is a queue of notices whose calls are counted.
type noticeQueue struct {
	fleet.Notices
	counter
}

// countedNotices counts the calls of notices, if there are any.
func countedNotices(notices fleet.Notices, metrics *telemetry.Metrics) fleet.Notices {
	if notices == nil {
		return nil
	}
	return noticeQueue{notices, counter{metrics, "notices"}}
}

func (q noticeQueue) Receive(ctx context.Context) (_ []lifecycle.NoticeDelivery, err error) {
	defer q.count("receive", &err)
	return q.Notices.Receive(ctx)
}

func (q noticeQueue) Delete(ctx context.Context, handles ...string) (err error) {
	defer q.count("delete", &err)
	return q.Notices.Delete(ctx, handles...)
}

// countedCompute is a cloud whose calls are counted.
type countedCompute struct {
	fleet.Compute
	counter
}

func (c countedCompute) Launch(ctx context.Context, order lifecycle.LaunchOrder) (_ []machine, err error) {
	defer c.count("launch", &err)
	return c.Compute.Launch(ctx, order)
}

func (c countedCompute) Launched(ctx context.Context, order lifecycle.LaunchOrder) (_ []machine, err error) {
	defer c.count("launched", &err)
	return c.Compute.Launched(ctx, order)
}

func (c countedCompute) Describe(ctx context.Context, instanceIDs []string) (_ []machine, err error) {
	defer c.count("describe", &err)
	return c.Compute.Describe(ctx, instanceIDs)
}

func (c countedCompute) List(ctx context.Context, page lifecycle.PageOf) (_ lifecycle.Page[machine], err error) {
	defer c.count("list", &err)
	return c.Compute.List(ctx, page)
}

func (c countedCompute) Terminate(ctx context.Context, instanceIDs []string) (err error) {
	defer c.count("terminate", &err)
	return c.Compute.Terminate(ctx, instanceIDs)
}

// countedGitHub is GitHub with its calls counted.
type countedGitHub struct {
	fleet.GitHub
	counter
}

func (g countedGitHub) RegistrationToken(ctx context.Context, repository string) (_ token, err error) {
	defer g.count("registration_token", &err)
	return g.GitHub.RegistrationToken(ctx, repository)
}

func (g countedGitHub) RemoveToken(ctx context.Context, repository string) (_ token, err error) {
	defer g.count("remove_token", &err)
	return g.GitHub.RemoveToken(ctx, repository)
}

func (g countedGitHub) FindRunner(ctx context.Context, repository, name string) (_ runner, err error) {
	defer g.count("find_runner", &err)
	return g.GitHub.FindRunner(ctx, repository, name)
}

func (g countedGitHub) DeleteRunner(ctx context.Context, repository string, id int64) (err error) {
	defer g.count("delete_runner", &err)
	return g.GitHub.DeleteRunner(ctx, repository, id)
}

func (g countedGitHub) Runners(ctx context.Context, repository string, page lifecycle.PageOf) (_ lifecycle.Page[runner], err error) {
	defer g.count("runners", &err)
	return g.GitHub.Runners(ctx, repository, page)
}
