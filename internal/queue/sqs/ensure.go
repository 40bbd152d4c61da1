package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/queue/named"
)

// Ensure makes the queues what they should be and returns what it created or changed; a dry run changes nothing
// and returns what it would. It deletes nothing. One queue that fails does not keep it from the others.
func (q *Queue) Ensure(ctx context.Context, dryRun bool) ([]resources.Resource, error) {
	changes, err := q.ensure(ctx, q.malformed(), maxRetention, dryRun)
	errs := []error{err}
	for _, n := range q.queues {
		change, err := q.ensure(ctx, q.name(n), q.retention, dryRun)
		changes, errs = append(changes, change...), append(errs, err)
	}
	return changes, errors.Join(errs...)
}

func (q *Queue) ensure(ctx context.Context, name string, keep time.Duration, dryRun bool) ([]resources.Resource, error) {
	// Visibility and wait are for people and others who look into it: our own calls say what they want.
	attributes := map[string]string{
		retention: named.Seconds(keep), visibility: named.Seconds(q.visibility), waitTime: named.Seconds(receiveWait), delay: "0", encryption: "true",
	}
	return q.all.Ensure(ctx, name, named.Wanted{
		Created: fmt.Sprintf("messages are kept for %v, encrypted", keep), Attributes: attributes,
		Differences: func(found map[string]string) (map[string]string, []string) { return differences(found, attributes) },
	}, dryRun)
}

// The attributes that are looked at.
const (
	retention  = string(types.QueueAttributeNameMessageRetentionPeriod)
	visibility = string(types.QueueAttributeNameVisibilityTimeout)
	waitTime   = string(types.QueueAttributeNameReceiveMessageWaitTimeSeconds)
	delay      = string(types.QueueAttributeNameDelaySeconds)
	encryption = string(types.QueueAttributeNameSqsManagedSseEnabled)
	ownKey     = string(types.QueueAttributeNameKmsMasterKeyId)
	redrive    = string(types.QueueAttributeNameRedrivePolicy)
)

// differences are the attributes to set, and why, in sentences.
func differences(found, want map[string]string) (set map[string]string, why []string) {
	set = map[string]string{}
	for _, a := range []struct{ name, sentence string }{
		{retention, "messages were kept for %s, not for %s"},
		{visibility, "a received message was hidden for %s, not for %s"},
		{waitTime, "a receive waited for %s, not for %s"},
		{delay, "a message was held back for %s, not for %s"},
	} {
		if is, should := found[a.name], want[a.name]; is != should {
			set[a.name], why = should, append(why, fmt.Sprintf(a.sentence, spoken(is), spoken(should)))
		}
	}
	if found[encryption] != "true" && found[ownKey] == "" { // a key of the owner's choice is as good
		set[encryption], why = "true", append(why, "messages were not encrypted")
	}
	if found[redrive] != "" {
		set[redrive], why = "", append(why, "messages of good hosts went to a dead-letter queue when they had been received often")
	}
	return set, why
}

// spoken is a number of seconds, for people.
func spoken(seconds string) string {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return seconds
	}
	return (time.Duration(n) * time.Second).String()
}
