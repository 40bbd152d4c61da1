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
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/queue/named"
)

const (
	// ReceiveWait is how long a receive waits for a first notice: the longest that SQS knows, so that an
	// empty queue costs the fewest calls.
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
	// Tags are those of the owner, for the queue, beside the fleet's own.
	Tags map[string]string
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

// New returns the queue behind the client, whose calls may take as long as a receive does. It makes no call: Ensure makes the queue.
func New(client *sqs.Client, o Options) *Queue {
	client = sqs.New(client.Options(), patient)
	o.Logger = cmp.Or(o.Logger, hclog.NewNullLogger())
	prefix := cmp.Or(o.Prefix, "remuda")
	all := &named.Queues{Client: client, Fleet: prefix, Tags: o.Tags, Missing: "run Refresh, which makes it, or leave aws.notices out"}
	return &Queue{client: client, all: all, name: prefix + "-notices", log: o.Logger}
}

// patient makes a client wait for the answer of a long poll.
func patient(o *sqs.Options) {
	if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
		o.HTTPClient = client.WithTimeout(ReceiveWait + client.GetTimeout())
	}
}

// Receive hands out at most ten notices, and waits up to ReceiveWait for a first
// one. What is no notice, or none that matters, is deleted.
func (q *Queue) Receive(ctx context.Context) ([]notice.Delivery, error) {
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
	var notices []notice.Delivery
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
			notices = append(notices, notice.Delivery{Notice: n, Handle: handle})
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

// ErrIgnored is an event of EventBridge that is sound and announces nothing that matters to a host.
var ErrIgnored = errors.New("announces nothing that matters to a host")

// maxNotice bounds the body of an event; EC2's are below 1 KiB.
const maxNotice = 16 << 10

var noticedID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// Parse reads an event of EventBridge, as its rule puts it into a queue. Source of its form: EC2 user guide,
// "Monitor Amazon EC2 using EventBridge". An event of another kind is ErrIgnored.
func Parse(body []byte) (notice.Notice, error) {
	malformed := func(format string, args ...any) (notice.Notice, error) {
		return notice.Notice{}, fmt.Errorf("parse notice: %w", fmt.Errorf(format, args...))
	}
	if len(body) > maxNotice {
		return malformed("%d bytes, at most %d allowed", len(body), maxNotice)
	}
	var event struct {
		Version    string    `json:"version"`
		DetailType string    `json:"detail-type"`
		Source     string    `json:"source"`
		Time       time.Time `json:"time"`
		Detail     struct {
			InstanceID string `json:"instance-id"`
			Action     string `json:"instance-action"`
			State      string `json:"state"`
		} `json:"detail"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return malformed("%w", err)
	}
	n := notice.Notice{InstanceID: event.Detail.InstanceID, At: event.Time.UTC()}
	switch {
	case event.Version != "0":
		return malformed("version is %.20q, not of an event of EventBridge", event.Version)
	case event.Source != "aws.ec2":
		return notice.Notice{}, fmt.Errorf("source %.40q: %w", event.Source, ErrIgnored)
	}
	switch event.DetailType {
	case "EC2 Spot Instance Interruption Warning":
		n.Kind = notice.Interruption
	case "EC2 Instance Rebalance Recommendation":
		n.Kind = notice.Rebalance
	case "EC2 Instance State-change Notification":
		switch event.Detail.State {
		case "stopping", "stopped", "shutting-down", "terminated":
			n.Kind = notice.Ending
		case "pending", "running":
			return notice.Notice{}, fmt.Errorf("state %s: %w", event.Detail.State, ErrIgnored)
		default:
			return malformed("state %.40q is not one of EC2's", event.Detail.State)
		}
	default:
		return notice.Notice{}, fmt.Errorf("%.80q: %w", event.DetailType, ErrIgnored)
	}
	switch {
	case !noticedID.MatchString(n.InstanceID):
		return malformed("instance-id %.40q is not an instance's", n.InstanceID)
	case n.At.IsZero():
		return malformed("time is missing")
	case n.Kind == notice.Interruption && !interrupting(event.Detail.Action):
		return malformed("instance-action %.40q is not one of EC2's", event.Detail.Action)
	}
	return n, nil
}

// interrupting: whichever of these EC2 does, no job outlives it.
func interrupting(action string) bool {
	return action == "terminate" || action == "stop" || action == "hibernate"
}

// The attributes that are looked at.
const (
	keep       = string(types.QueueAttributeNameMessageRetentionPeriod)
	encryption = string(types.QueueAttributeNameSqsManagedSseEnabled)
	ownKey     = string(types.QueueAttributeNameKmsMasterKeyId)
	policy     = string(types.QueueAttributeNamePolicy)
	arn        = string(types.QueueAttributeNameQueueArn)
)

// Ensure makes the queue what it should be, with a policy that lets the rules of its account and region write
// to it, and returns what it created or changed; a dry run changes nothing and returns what it would. The rule
// itself is its owner's: docs/configuration.md has it.
func (q *Queue) Ensure(ctx context.Context, dryRun bool) ([]resources.Resource, error) {
	return q.all.Ensure(ctx, q.name, named.Wanted{
		Created:     fmt.Sprintf("notices are kept for %v, encrypted", retention),
		Attributes:  map[string]string{keep: named.Seconds(retention), encryption: "true"},
		Differences: differences, Afterwards: true, // its policy names it
	}, dryRun)
}

// differences are the attributes to set, and why, in sentences.
func differences(found map[string]string) (set map[string]string, why []string) {
	set = map[string]string{}
	if want := named.Seconds(retention); found[keep] != want {
		set[keep], why = want, append(why, fmt.Sprintf("notices were kept for %s s, not for %s", found[keep], want))
	}
	if found[encryption] != "true" && found[ownKey] == "" { // a key of the owner's choice is as good
		set[encryption], why = "true", append(why, "notices were not encrypted")
	}
	if want := policyOf(found[arn]); !samePolicy(found[policy], want) {
		set[policy], why = want, append(why, "EventBridge was not let write to it, or others were")
	}
	return set, why
}

// policyOf lets only the rules of the queue's own account and region write to it: a
// writer of notices can have hosts ended.
func policyOf(queueARN string) string {
	parts := strings.SplitN(queueARN, ":", 6) // arn:PARTITION:sqs:REGION:ACCOUNT:NAME
	if len(parts) != 6 {
		return ""
	}
	text, err := json.Marshal(map[string]any{
		"Version": "2012-10-17",
		"Statement": []any{map[string]any{
			"Sid": "remuda", "Effect": "Allow", "Principal": map[string]string{"Service": "events.amazonaws.com"},
			"Action": "sqs:SendMessage", "Resource": queueARN,
			"Condition": map[string]any{"ArnLike": map[string]string{
				"aws:SourceArn": fmt.Sprintf("arn:%s:events:%s:%s:rule/*", parts[1], parts[3], parts[4]),
			}},
		}},
	})
	if err != nil {
		panic(err) // text alone can be encoded
	}
	return string(text)
}

// samePolicy compares what they say and not how it is written.
func samePolicy(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
