// Package named is what the adapters of Amazon SQS have in common: calls to a queue by its name, and making a
// queue what it should be.
package named

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
)

// Queues are the queues of one account and region.
type Queues struct {
	Client *sqs.Client
	// Fleet is the prefix of the fleet that has them, for their tag.
	Fleet string
	// Tags are those that the owner of the fleet wants on them beside it.
	Tags map[string]string
	// Missing says what to do when a queue is missing.
	Missing string

	urls sync.Map // by name
}

// At makes a call to a queue. Its URL is asked for once; when the queue turns out to be missing, once more,
// since it may have been made again elsewhere. What is the verb, such as "receive from".
func (q *Queues) At(ctx context.Context, what, name string, call func(url string) error) error {
	if url, known := q.urls.Load(name); known {
		err := call(url.(string))
		if !isMissing(err) {
			return q.Failed(what, name, err)
		}
	}
	url, err := q.find(ctx, name)
	if err == nil {
		err = call(url)
	}
	if isMissing(err) {
		q.urls.Delete(name)
	}
	return q.Failed(what, name, err)
}

// find asks for the URL of a queue.
func (q *Queues) find(ctx context.Context, name string) (string, error) {
	out, err := q.Client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return "", err
	}
	q.urls.Store(name, *out.QueueUrl)
	return *out.QueueUrl, nil
}

// isMissing: there is no such queue. The class alone does not tell it from a handle that is of no message any more.
func isMissing(err error) bool {
	switch aws.Code(err) {
	case "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue":
		return true
	}
	return false
}

// Failed names the queue, and what to do when it is missing. It is nil for nil.
func (q *Queues) Failed(what, name string, err error) error {
	what += " queue " + name
	switch {
	case err == nil:
		return nil
	case isMissing(err):
		return aws.Refused(what, err, q.Missing)
	}
	return aws.Wrap(what, err)
}

// Seconds is a time as an attribute has it.
func Seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// Wanted is what a queue should be.
type Wanted struct {
	// Created says what a new queue is, for people.
	Created string
	// Attributes are those of a new queue.
	Attributes map[string]string
	// Differences are the attributes to set in a queue that has others, and why, in sentences.
	Differences func(found map[string]string) (set map[string]string, why []string)
	// Afterwards says that a new queue, too, is looked at for differences: they depend on what SQS gave it.
	Afterwards bool
}

// Ensure makes a queue what it should be and returns what it created or changed: nothing, or one change. A dry run
// changes nothing and returns what it would change. It deletes nothing.
func (q *Queues) Ensure(ctx context.Context, name string, w Wanted, dryRun bool) ([]resources.Resource, error) {
	created := changed(name, resources.Created, "it was missing; "+w.Created)
	url, err := q.find(ctx, name)
	switch {
	case err == nil:
		return q.correct(ctx, name, url, w, dryRun)
	case !isMissing(err):
		return nil, aws.Wrap("find queue "+name, err)
	case dryRun:
		return created, nil
	}
	out, err := q.Client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: w.Attributes, Tags: q.tags()})
	switch {
	case err == nil:
		q.urls.Store(name, *out.QueueUrl)
		if w.Afterwards {
			_, err = q.correct(ctx, name, *out.QueueUrl, w, false)
		}
		return created, err
	case aws.ClassOf(err) == aws.Exists: // another replica was faster, and made one that differs
		if url, err := q.find(ctx, name); err == nil {
			return q.correct(ctx, name, url, w, false)
		}
	}
	return nil, aws.Wrap("create queue "+name, err)
}

func changed(name string, change resources.Change, detail string) []resources.Resource {
	return []resources.Resource{{Kind: "queue", Name: name, Change: change, Detail: detail}}
}

// tags are those of a queue.
func (q *Queues) tags() map[string]string { return aws.FleetTags(q.Fleet, q.Tags) }

// tag gives a queue the tags that it lacks, and says why. The policies of a fleet cover the queues of another whose prefix begins with its own,
// and deny what has the tag of another. Older versions made queues without a tag. A queue of another fleet is lifecycle.ErrRefused.
func (q *Queues) tag(ctx context.Context, name, url string, dryRun bool) (why []string, err error) {
	out, err := q.Client.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &url})
	if err != nil {
		return nil, aws.Wrap("read the tags of queue "+name, err)
	}
	lacking := aws.LackingTags(out.Tags, q.tags())
	switch fleet, tagged := out.Tags[aws.TagFleet]; {
	case tagged && fleet != q.Fleet:
		return nil, fmt.Errorf("look at queue %s: %w: it is that of the fleet with the prefix %s; choose another prefix, or another name for the resource class",
			name, lifecycle.ErrRefused, fleet)
	case len(lacking) == 0:
		return nil, nil
	case !dryRun:
		// The tag of the fleet is always among them: the policies ask for it.
		if _, err := q.Client.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: &url, Tags: q.tags()}); err != nil {
			return nil, aws.Wrap("tag queue "+name, err)
		}
	}
	return []string{aws.WhyTagged(lacking)}, nil
}

// correct tags the queue and sets what differs.
func (q *Queues) correct(ctx context.Context, name, url string, w Wanted, dryRun bool) ([]resources.Resource, error) {
	why, err := q.tag(ctx, name, url, dryRun)
	if err != nil {
		return nil, err
	}
	out, err := q.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, aws.Wrap("look at queue "+name, err)
	}
	set, differs := w.Differences(out.Attributes)
	why = append(why, differs...)
	if len(set) > 0 && !dryRun {
		_, err = q.Client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: set})
	}
	switch {
	case err != nil:
		return nil, aws.Wrap("change queue "+name, err)
	case len(why) == 0:
		return nil, nil
	}
	return changed(name, resources.Updated, strings.Join(why, "; ")), nil
}
