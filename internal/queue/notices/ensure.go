package notices

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/named"
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
// to it, and returns what it created or changed; a dry run changes nothing and returns what it would. The rule
// itself is its owner's: docs/configuration.md has it.
func (q *Queue) Ensure(ctx context.Context, dryRun bool) ([]lifecycle.Resource, error) {
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
