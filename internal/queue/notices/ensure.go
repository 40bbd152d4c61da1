package notices

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The attributes that are looked at.
const (
	keep       = string(types.QueueAttributeNameMessageRetentionPeriod)
	encryption = string(types.QueueAttributeNameSqsManagedSseEnabled)
	ownKey     = string(types.QueueAttributeNameKmsMasterKeyId)
	policy     = string(types.QueueAttributeNamePolicy)
	arn        = string(types.QueueAttributeNameQueueArn)
)

// Ensure makes the queue what it should be, with a policy that lets the rules of its account and region write
// to it, and tells what it created or changed; a dry run changes nothing and tells what it would. The rule
// itself is its owner's: docs/configuration.md has it.
func (q *Queue) Ensure(ctx context.Context, dryRun bool) ([]lifecycle.Resource, error) {
	told := func(change lifecycle.ResourceChange, why ...string) []lifecycle.Resource {
		return []lifecycle.Resource{{Kind: "queue", Name: q.name, Change: change, Detail: strings.Join(why, "; ")}}
	}
	q.know("")
	url, err := q.find(ctx)
	if isMissing(err) {
		created := told(lifecycle.ResourceCreated, fmt.Sprintf("it was missing; notices are kept for %v, encrypted", retention))
		if dryRun {
			return created, nil
		}
		if url, err = q.create(ctx); err != nil {
			return nil, err
		}
		_, err := q.correct(ctx, url, false) // its policy names it
		return created, err
	}
	if err != nil {
		return nil, aws.Wrap("find queue "+q.name, err)
	}
	why, err := q.correct(ctx, url, dryRun)
	if err != nil || len(why) == 0 {
		return nil, err
	}
	return told(lifecycle.ResourceUpdated, why...), nil
}

func (q *Queue) create(ctx context.Context) (string, error) {
	out, err := q.client.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: &q.name, Attributes: map[string]string{keep: number(retention), encryption: "true"},
	})
	switch {
	case err == nil:
		q.know(*out.QueueUrl)
		return *out.QueueUrl, nil
	case aws.ClassOf(err) == aws.Exists: // another replica was faster, and made one that differs
		return q.find(ctx)
	}
	return "", aws.Wrap("create queue "+q.name, err)
}

// correct sets what differs, and says in sentences what did.
func (q *Queue) correct(ctx context.Context, url string, dryRun bool) (why []string, err error) {
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, aws.Wrap("look at queue "+q.name, err)
	}
	found, set := out.Attributes, map[string]string{}
	if found[keep] != number(retention) {
		set[keep], why = number(retention), append(why, fmt.Sprintf("notices were kept for %s s, not for %s", found[keep], number(retention)))
	}
	if found[encryption] != "true" && found[ownKey] == "" { // a key of the owner's choice is as good
		set[encryption], why = "true", append(why, "notices were not encrypted")
	}
	if want := policyOf(found[arn]); !samePolicy(found[policy], want) {
		set[policy], why = want, append(why, "EventBridge was not let write to it, or others were")
	}
	if len(set) == 0 || dryRun {
		return why, nil
	}
	if _, err := q.client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: set}); err != nil {
		return nil, aws.Wrap("change queue "+q.name, err)
	}
	return why, nil
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

func number(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
