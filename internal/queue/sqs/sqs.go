// Package sqs is the queue of idle hosts on Amazon SQS: a standard queue for
// each resource and usage class, named <prefix>-<resource class>-<usage class>,
// and one for bodies that cannot be parsed, <prefix>-malformed.
//
// No queue has a redrive policy: a message about a host that fits no request is
// received many times, and must not end among the malformed ones for that.
//
// A receive waits up to a second for a first message, for two reasons. Without a wait SQS asks only some of
// its servers and may miss what is there; the by-pool index would still find the host, but all replicas would
// look at the same hosts first. And only a request that finds too few hosts waits at all, before it launches
// one, which takes half a minute.
package sqs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/queue/hint"
	"github.com/remuda-ci/remuda/internal/queue/named"
	"github.com/remuda-ci/remuda/internal/retry"
)

// The bounds of SQS. Source: its API reference, SetQueueAttributes.
const (
	minRetention  = time.Minute
	maxRetention  = 14 * 24 * time.Hour
	minVisibility = time.Second // 0 would hand a message to everybody at once
	maxVisibility = 12 * time.Hour
)

// receiveWait is how long a receive waits for a first message: the port's
// limit, and the shortest that SQS knows.
const receiveWait = time.Second

// Options of New. The zero value takes the defaults.
type Options struct {
	// Prefix begins the name of every queue; default "remuda".
	Prefix string
	// Tags are those of the owner, for the queues that Ensure makes or finds, beside the fleet's own.
	Tags map[string]string
	// Queues are those that Ensure makes.
	Queues []lifecycle.QueueName
	// Logger gets the messages that cannot be parsed; default none.
	Logger hclog.Logger
	// Visibility is how long a received message is hidden from others, in whole
	// seconds; default hint.Visibility.
	Visibility time.Duration
	// Retention is how long a message is kept, in whole seconds, within the
	// bounds of SQS of 1 minute to 14 days; default hint.Retention.
	Retention time.Duration
}

// Queue keeps the messages of every resource and usage class.
type Queue struct {
	client     *sqs.Client
	all        *named.Queues
	prefix     string
	queues     []lifecycle.QueueName
	log        hclog.Logger
	visibility time.Duration
	retention  time.Duration
}

// New returns the queues behind the client. It makes no call: Ensure makes the queues.
func New(client *sqs.Client, o Options) *Queue {
	o.Logger = cmp.Or(o.Logger, hclog.NewNullLogger())
	if o.Visibility <= 0 {
		o.Visibility = hint.Visibility
	}
	if o.Retention <= 0 {
		o.Retention = hint.Retention
	}
	o.Prefix = cmp.Or(o.Prefix, "remuda")
	return &Queue{
		client: client, all: &named.Queues{Client: client, Fleet: o.Prefix, Tags: o.Tags, Missing: missing(client)}, prefix: o.Prefix, queues: o.Queues, log: o.Logger,
		visibility: within(minVisibility, o.Visibility, maxVisibility), retention: within(minRetention, o.Retention, maxRetention),
	}
}

func missing(client *sqs.Client) string {
	return fmt.Sprintf("it is not in %s in the account of these credentials: run Refresh, or `controld config check --aws` to see what is missing",
		client.Options().Region)
}

// within is d in whole seconds, rounded up, and within the bounds.
func within(least, d, most time.Duration) time.Duration {
	return min(max(least, (d+time.Second-1).Truncate(time.Second)), most)
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }

// name is the full name of a queue.
func (q *Queue) name(n lifecycle.QueueName) string {
	return q.prefix + "-" + n.ResourceClass + "-" + string(n.UsageClass)
}

// malformed is the name of the queue of bodies that cannot be parsed.
func (q *Queue) malformed() string { return q.prefix + "-malformed" }

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

// Actions are what the queue calls. A batch is allowed by the action of a single message.
func Actions() []aws.Permission {
	return []aws.Permission{
		{Action: "sqs:GetQueueUrl", Role: aws.RoleControld, On: aws.OnQueues, Why: "finds a queue by its name, once"},
		{Action: "sqs:SendMessage", Role: aws.RoleControld, On: aws.OnQueues, Why: "announces a host that came into the pool, and puts malformed messages aside"},
		{Action: "sqs:ReceiveMessage", Role: aws.RoleControld, On: aws.OnQueues, Why: "looks for idle hosts"},
		{Action: "sqs:DeleteMessage", Role: aws.RoleControld, On: aws.OnQueues, Why: "removes the messages of hosts that were claimed or are gone"},
		{Action: "sqs:ChangeMessageVisibility", Role: aws.RoleControld, On: aws.OnQueues, Why: "gives back the messages of hosts that did not fit"},

		{Action: "sqs:GetQueueUrl", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "looks whether a queue exists"},
		{Action: "sqs:GetQueueAttributes", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "compares the queues with what they should be"},
		{Action: "sqs:ListQueueTags", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "looks which tags a queue has, and whether it is of another fleet"},
		{Action: "sqs:TagQueue", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "gives a queue the tags of the fleet and its owner, also while it makes it"},
		{Action: "sqs:CreateQueue", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "makes a queue that is missing"},
		{Action: "sqs:SetQueueAttributes", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "corrects the times and the encryption of a queue"},
	}
}

// batch is a call for several entries at once, which may fail as a whole or for some of them.
type batch struct {
	what      string // the verb, such as "send to"
	operation string
	queue     string // its full name
	entries   int
	// call makes it for the entries of these numbers.
	call func(url string, entries []int) ([]types.BatchResultErrorEntry, error)
	// forgives reports whether the failure of an entry counts as a success; nil: it never does.
	forgives func(error) bool
}

// inBatches does b in calls of at most hint.MaxBatch entries. One that fails
// does not keep the others from being made.
func (q *Queue) inBatches(ctx context.Context, b batch) error {
	all := make([]int, b.entries)
	for i := range all {
		all[i] = i
	}
	var errs []error
	for some := range slices.Chunk(all, hint.MaxBatch) {
		errs = append(errs, q.do(ctx, b, some))
	}
	return errors.Join(errs...)
}

// do makes one call, and again for the entries that failed and may go well another time: as often, and after
// the same waits, as the SDK repeats a call that failed as a whole.
func (q *Queue) do(ctx context.Context, b batch, entries []int) error {
	retryer := q.client.Options().Retryer
	var refused error
	for try := 1; ; try++ {
		var failures []types.BatchResultErrorEntry
		err := q.all.At(ctx, b.what, b.queue, func(url string) (err error) {
			failures, err = b.call(url, entries)
			return err
		})
		if err != nil {
			return err
		}
		left, worst, passing := b.sort(failures)
		refused = errors.Join(refused, q.all.Failed(b.what, b.queue, worst))
		if entries = left; len(entries) == 0 {
			return refused
		}
		if try >= retryer.MaxAttempts() {
			return errors.Join(refused, q.all.Failed(b.what, b.queue, passing))
		}
		if err := wait(ctx, retryer, try, passing); err != nil {
			return errors.Join(refused, &lifecycle.UnavailableError{What: b.what + " queue " + b.queue, Err: err})
		}
	}
}

// sort tells failures that may pass, with the numbers of their entries, from
// the one that will not, the first for all.
func (b batch) sort(failures []types.BatchResultErrorEntry) (left []int, worst, passing error) {
	for _, f := range failures {
		entry, err := strconv.Atoi(sdk.ToString(f.Id))
		failure := b.failure(f)
		switch class := aws.ClassOf(failure); {
		case err != nil || b.forgives != nil && b.forgives(failure):
		case class == aws.Retry || class == aws.Throttled:
			left, passing = append(left, entry), failure
		case worst == nil:
			worst = failure
		}
	}
	return left, worst, passing
}

// failure is why the call failed for one entry, as if it had been made for that alone.
func (b batch) failure(e types.BatchResultErrorEntry) error {
	fault := smithy.FaultServer
	if e.SenderFault {
		fault = smithy.FaultClient
	}
	return &smithy.OperationError{ServiceID: "SQS", OperationName: b.operation, Err: &smithy.GenericAPIError{
		Code: sdk.ToString(e.Code), Message: sdk.ToString(e.Message), Fault: fault,
	}}
}

// id of an entry is its number.
func id(entry int) *string { return sdk.String(strconv.Itoa(entry)) }

// wait lets pass what the SDK would between two tries.
func wait(ctx context.Context, retryer sdk.Retryer, try int, err error) error {
	d, err := retryer.RetryDelay(try, err)
	if err != nil {
		return err
	}
	if retry.Sleep(ctx, d) != nil {
		return ctx.Err()
	}
	return nil
}
