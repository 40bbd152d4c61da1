package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Ensure makes the queues what they should be and tells what it created or changed; a dry run changes nothing
// and tells what it would. It deletes nothing. One queue that fails does not keep it from the others.
func (q *Queue) Ensure(ctx context.Context, dryRun bool) ([]lifecycle.Resource, error) {
	want := []ensurer{{Queue: q, queue: q.malformed(), retention: maxRetention, dry: dryRun}}
	for _, n := range q.queues {
		want = append(want, ensurer{Queue: q, queue: q.name(n), retention: q.retention, dry: dryRun})
	}
	var changes []lifecycle.Resource
	var errs []error
	for _, e := range want {
		change, err := e.ensure(ctx)
		changes, errs = append(changes, change...), append(errs, err)
	}
	return changes, errors.Join(errs...)
}

// ensurer makes one queue what it should be.
type ensurer struct {
	*Queue
	queue     string // its full name
	retention time.Duration
	dry       bool
}

// ensure returns what it did: nothing, or one change.
func (e ensurer) ensure(ctx context.Context) ([]lifecycle.Resource, error) {
	url, err := e.find(ctx, e.queue)
	switch {
	case err == nil:
		return e.correct(ctx, url)
	case !isMissing(err):
		return nil, aws.Wrap("find queue "+e.queue, err)
	}
	created := e.told(lifecycle.ResourceCreated, fmt.Sprintf("it was missing; messages are kept for %v, encrypted", e.retention))
	if e.dry {
		return created, nil
	}
	out, err := e.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &e.queue, Attributes: e.attributes()})
	switch {
	case err == nil:
		e.urls.Store(e.queue, *out.QueueUrl)
		return created, nil
	case aws.ClassOf(err) == aws.Exists: // another replica was faster, and made one that differs
		if url, err := e.find(ctx, e.queue); err == nil {
			return e.correct(ctx, url)
		}
	}
	return nil, aws.Wrap("create queue "+e.queue, err)
}

func (e ensurer) told(change lifecycle.ResourceChange, detail string) []lifecycle.Resource {
	return []lifecycle.Resource{{Kind: "queue", Name: e.queue, Change: change, Detail: detail}}
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

// attributes of a new queue. Visibility and wait are for people and others who
// look into it: our own calls say what they want.
func (e ensurer) attributes() map[string]string {
	return map[string]string{
		retention: number(e.retention), visibility: number(e.visibility), waitTime: number(receiveWait), delay: "0", encryption: "true",
	}
}

func number(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// correct sets what differs.
func (e ensurer) correct(ctx context.Context, url string) ([]lifecycle.Resource, error) {
	out, err := e.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, aws.Wrap("look at queue "+e.queue, err)
	}
	set, why := e.differences(out.Attributes)
	if len(set) == 0 {
		return nil, nil
	}
	updated := e.told(lifecycle.ResourceUpdated, strings.Join(why, "; "))
	if e.dry {
		return updated, nil
	}
	if _, err := e.client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: set}); err != nil {
		return nil, aws.Wrap("change queue "+e.queue, err)
	}
	return updated, nil
}

// differences are the attributes to set, and why, in sentences.
func (e ensurer) differences(found map[string]string) (set map[string]string, why []string) {
	set = map[string]string{}
	want := e.attributes()
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
