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
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/hint"
	"github.com/remuda-ci/remuda/internal/queue/named"
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
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Visibility <= 0 {
		o.Visibility = hint.Visibility
	}
	if o.Retention <= 0 {
		o.Retention = hint.Retention
	}
	return &Queue{
		client: client, all: &named.Queues{Client: client, Missing: missing(client)}, prefix: cmp.Or(o.Prefix, "remuda"), queues: o.Queues, log: o.Logger,
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
