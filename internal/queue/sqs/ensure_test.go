package sqs_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	api "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/queue/sqs"
)

func created(name, kept string) resources.Resource {
	return resources.Resource{
		Kind: "queue", Name: name, Change: resources.Created, Detail: "it was missing; messages are kept for " + kept + ", encrypted",
	}
}

func updated(name, detail string) resources.Resource {
	return resources.Resource{Kind: "queue", Name: name, Change: resources.Updated, Detail: detail}
}

// wantChanges runs Ensure and checks what it tells.
func (w *world) wantChanges(t *testing.T, what string, dryRun bool, want ...resources.Resource) {
	t.Helper()
	got, err := w.Ensure(t.Context(), dryRun)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: changes (-want +got):\n%s", what, diff)
	}
}

// relevant are the attributes that Ensure answers for.
func relevant(found map[string]string) map[string]string {
	some := map[string]string{}
	for _, name := range []string{
		"MessageRetentionPeriod", "VisibilityTimeout", "ReceiveMessageWaitTimeSeconds", "DelaySeconds", "SqsManagedSseEnabled", "RedrivePolicy", "KmsMasterKeyId",
	} {
		if value, ok := found[name]; ok {
			some[name] = value
		}
	}
	return some
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := []resources.Resource{created(malformedQueue, "336h0m0s"), created(largeQueue, "7m0s"), created(spotQueue, "7m0s")}
	w.wantChanges(t, "a dry run", true, all...)
	if w.urlOf(t, largeQueue) != "" {
		t.Error("a dry run made a queue")
	}
	w.wantChanges(t, "the first run", false, all...)
	w.wantChanges(t, "the second run", false)
	w.wantChanges(t, "a dry run when all is well", true)
	for name, kept := range map[string]string{largeQueue: "420", spotQueue: "420", malformedQueue: "1209600"} {
		want := map[string]string{
			"MessageRetentionPeriod": kept, "VisibilityTimeout": "30", "ReceiveMessageWaitTimeSeconds": "1", "DelaySeconds": "0", "SqsManagedSseEnabled": "true",
		}
		if diff := cmp.Diff(want, relevant(w.attributesOf(t, name))); diff != "" {
			t.Errorf("attributes of %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEnsureCorrects(t *testing.T) {
	t.Parallel()
	redrive := `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:ACCOUNT:remuda-malformed","maxReceiveCount":"3"}`
	tests := map[string]struct {
		set  map[string]string
		want string
	}{
		"times": {
			map[string]string{"MessageRetentionPeriod": "345600", "VisibilityTimeout": "43200", "ReceiveMessageWaitTimeSeconds": "20", "DelaySeconds": "900"},
			"messages were kept for 96h0m0s, not for 7m0s; a received message was hidden for 12h0m0s, not for 30s; " +
				"a receive waited for 20s, not for 1s; a message was held back for 15m0s, not for 0s",
		},
		"one time":      {map[string]string{"VisibilityTimeout": "0"}, "a received message was hidden for 0s, not for 30s"},
		"no encryption": {map[string]string{"SqsManagedSseEnabled": "false"}, "messages were not encrypted"},
		"a key of the owner's": {
			map[string]string{"SqsManagedSseEnabled": "false", "KmsMasterKeyId": "alias/ours"}, "",
		},
		"a dead-letter queue": {
			map[string]string{"RedrivePolicy": redrive}, "messages of good hosts went to a dead-letter queue when they had been received often",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newQueues(t)
			right := relevant(w.attributesOf(t, largeQueue))
			arn, _, _ := strings.Cut(strings.TrimPrefix(w.attributesOf(t, malformedQueue)["QueueArn"], "arn:aws:sqs:us-east-1:"), ":")
			for name, value := range test.set {
				test.set[name] = strings.ReplaceAll(value, "ACCOUNT", arn)
			}
			w.set(t, largeQueue, test.set)
			var want []resources.Resource
			if test.want != "" {
				want = append(want, updated(largeQueue, test.want))
			} else {
				right = relevant(w.attributesOf(t, largeQueue))
			}
			wrong := relevant(w.attributesOf(t, largeQueue))
			w.wantChanges(t, "a dry run", true, want...)
			if diff := cmp.Diff(wrong, relevant(w.attributesOf(t, largeQueue))); diff != "" {
				t.Errorf("a dry run changed something (-want +got):\n%s", diff)
			}
			w.wantChanges(t, "a run", false, want...)
			if diff := cmp.Diff(right, relevant(w.attributesOf(t, largeQueue))); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
			w.wantChanges(t, "another run", false)
		})
	}
}

// tagsOf are those of a queue.
func (w *world) tagsOf(t *testing.T, name string) map[string]string {
	t.Helper()
	out, err := w.raw.ListQueueTags(t.Context(), &api.ListQueueTagsInput{QueueUrl: ptr(w.urlOf(t, name))})
	if err != nil {
		t.Fatal(err)
	}
	return out.Tags
}

// TestEnsureTags: the policies of another fleet, whose prefix ours begins with, deny what has our tag. Queues of an older version have none.
func TestEnsureTags(t *testing.T) {
	t.Parallel()
	w := newQueues(t)
	tag := map[string]string{"remuda:fleet": "remuda"}
	for _, name := range []string{largeQueue, spotQueue, malformedQueue} {
		if diff := cmp.Diff(tag, w.tagsOf(t, name)); diff != "" {
			t.Errorf("tags of a new %s (-want +got):\n%s", name, diff)
		}
	}
	url := ptr(w.urlOf(t, largeQueue))
	_, err := w.raw.UntagQueue(t.Context(), &api.UntagQueueInput{QueueUrl: url, TagKeys: []string{"remuda:fleet"}})
	must(err)
	_, err = w.raw.TagQueue(t.Context(), &api.TagQueueInput{QueueUrl: url, Tags: map[string]string{"team": "ci"}})
	must(err)
	w.set(t, largeQueue, map[string]string{"VisibilityTimeout": "0"})
	both := updated(largeQueue, "tags were missing or different: remuda:fleet; a received message was hidden for 0s, not for 30s")
	w.wantChanges(t, "a dry run", true, both)
	if diff := cmp.Diff(map[string]string{"team": "ci"}, w.tagsOf(t, largeQueue)); diff != "" {
		t.Errorf("a dry run tagged it (-want +got):\n%s", diff)
	}
	w.wantChanges(t, "a run", false, both)
	w.wantChanges(t, "another run", false)
	if diff := cmp.Diff(map[string]string{"team": "ci", "remuda:fleet": "remuda"}, w.tagsOf(t, largeQueue)); diff != "" {
		t.Errorf("tags afterwards (-want +got):\n%s", diff)
	}
}

// TestEnsureTagsOfTheOwner: a queue has them from the call that makes it, since an organization may deny one without, and gets those that it lacks.
func TestEnsureTagsOfTheOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Queue = sqs.New(api.NewFromConfig(awstest.Config(t, w.proxy.URL())), sqs.Options{
		Queues: []lifecycle.QueueName{spot}, Tags: map[string]string{"team": "ci", "empty": ""},
	})
	w.proxy.Handle("sqs", "TagQueue", func(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		awstest.Fail(rw, r, http.StatusForbidden, "AccessDenied", "not while it is made")
	})
	w.wantChanges(t, "a run", false, created(malformedQueue, "336h0m0s"), created(spotQueue, "24h0m0s"))
	want := map[string]string{"remuda:fleet": "remuda", "team": "ci", "empty": ""}
	for _, name := range []string{spotQueue, malformedQueue} {
		if diff := cmp.Diff(want, w.tagsOf(t, name)); diff != "" {
			t.Errorf("tags of a new %s (-want +got):\n%s", name, diff)
		}
	}
	w.wantChanges(t, "another run", false)
	_, err := w.raw.TagQueue(t.Context(), &api.TagQueueInput{QueueUrl: ptr(w.urlOf(t, spotQueue)), Tags: map[string]string{"team": "web", "by": "a person"}})
	must(err)
	if _, err := w.Ensure(t.Context(), false); !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), "tag queue "+spotQueue) {
		t.Errorf("without permission: %v", err)
	}
	w.proxy.Handle("sqs", "TagQueue", func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		forward(r).Write(rw)
	})
	for _, dryRun := range []bool{true, false} {
		w.wantChanges(t, "a queue that differs", dryRun, updated(spotQueue, "tags were missing or different: team"))
	}
	want["by"] = "a person"
	if diff := cmp.Diff(want, w.tagsOf(t, spotQueue)); diff != "" {
		t.Errorf("tags afterwards (-want +got):\n%s", diff)
	}
	w.wantChanges(t, "a run at last", false)
}

// TestEnsureRefusesAQueueOfAnotherFleet: the class prod-large of a fleet remuda and the class large of a fleet remuda-prod have the same name.
func TestEnsureRefusesAQueueOfAnotherFleet(t *testing.T) {
	t.Parallel()
	w := newQueues(t)
	_, err := w.raw.TagQueue(t.Context(), &api.TagQueueInput{QueueUrl: ptr(w.urlOf(t, largeQueue)), Tags: map[string]string{"remuda:fleet": "rem"}})
	must(err)
	w.set(t, largeQueue, map[string]string{"VisibilityTimeout": "7"})
	changes, err := w.Ensure(t.Context(), false)
	const want = "look at queue remuda-large-on-demand: refused: it is that of the fleet with the prefix rem; choose another prefix, or another name for the resource class"
	if !errors.Is(err, lifecycle.ErrRefused) || err.Error() != want || len(changes) != 0 {
		t.Errorf("got  %v, %v\nwant %s", changes, err, want)
	}
	if found := w.attributesOf(t, largeQueue); found["VisibilityTimeout"] != "7" || w.tagsOf(t, largeQueue)["remuda:fleet"] != "rem" {
		t.Errorf("it was changed: %v, %v", found, w.tagsOf(t, largeQueue))
	}
}

func TestTimesAreWithinTheBoundsOfSQS(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options            sqs.Options
		kept, hidden, name string
	}{
		"defaults":    {sqs.Options{}, "86400", "30", "remuda-large-spot"},
		"too short":   {sqs.Options{Retention: time.Second, Visibility: time.Millisecond}, "60", "1", "remuda-large-spot"},
		"too long":    {sqs.Options{Retention: 365 * 24 * time.Hour, Visibility: 24 * time.Hour}, "1209600", "43200", "remuda-large-spot"},
		"part of one": {sqs.Options{Retention: 90*time.Second + 1, Visibility: 1500 * time.Millisecond, Prefix: "other"}, "91", "2", "other-large-spot"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.options.Queues = []lifecycle.QueueName{spot}
			q := sqs.New(api.NewFromConfig(awstest.Config(t, w.proxy.URL())), test.options)
			if _, err := q.Ensure(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			found := w.attributesOf(t, test.name)
			if found["MessageRetentionPeriod"] != test.kept || found["VisibilityTimeout"] != test.hidden {
				t.Errorf("kept for %s s, hidden for %s s, want %s and %s", found["MessageRetentionPeriod"], found["VisibilityTimeout"], test.kept, test.hidden)
			}
		})
	}
}

// deny refuses an operation for one queue, as a policy would.
func (w *world) deny(operation, queue string) {
	w.proxy.Handle("sqs", operation, func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		var named bool
		rewrite(r, func(body []byte) []byte {
			named = strings.Contains(string(body), queue+`"`)
			return body
		})
		if named {
			awstest.Fail(rw, r, http.StatusForbidden, "AccessDenied", "Access to the resource is denied.")
			return
		}
		forward(r).Write(rw)
	})
}

// TestEnsureWithoutPermission: the error names the queue and the action, and
// the other queues are still made.
func TestEnsureWithoutPermission(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		operation string
		existing  bool
		want      string
		changes   int
	}{
		"to find":   {"GetQueueUrl", false, "find queue remuda-large-spot: refused: sqs:GetQueueUrl: AccessDenied: Access to the resource is denied; allow the action sqs:GetQueueUrl (docs/iam)", 2},
		"to create": {"CreateQueue", false, "create queue remuda-large-spot: refused: sqs:CreateQueue: AccessDenied: Access to the resource is denied; allow the action sqs:CreateQueue (docs/iam)", 2},
		"to tag": {
			"ListQueueTags", true,
			"read the tags of queue remuda-large-spot: refused: sqs:ListQueueTags: AccessDenied: Access to the resource is denied; allow the action sqs:ListQueueTags (docs/iam)", 1,
		},
		"to look": {
			"GetQueueAttributes", true,
			"look at queue remuda-large-spot: refused: sqs:GetQueueAttributes: AccessDenied: Access to the resource is denied; allow the action sqs:GetQueueAttributes (docs/iam)", 1,
		},
		"to change": {
			"SetQueueAttributes", true,
			"change queue remuda-large-spot: refused: sqs:SetQueueAttributes: AccessDenied: Access to the resource is denied; allow the action sqs:SetQueueAttributes (docs/iam)", 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if test.existing {
				w.ensure(t)
				w.set(t, spotQueue, map[string]string{"VisibilityTimeout": "1"})
				w.set(t, malformedQueue, map[string]string{"VisibilityTimeout": "1"})
			}
			w.deny(test.operation, spotQueue)
			changes, err := w.Ensure(t.Context(), false)
			if !errors.Is(err, lifecycle.ErrRefused) || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if len(changes) != test.changes {
				t.Errorf("changes %+v, want %d of them, in other queues", changes, test.changes)
			}
		})
	}
}

// TestEnsureIsOvertaken: between the look and the creation, another caller makes
// the queue, with other times.
func TestEnsureIsOvertaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.proxy.Handle("sqs", "CreateQueue", func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		rewrite(r, func(body []byte) []byte {
			w.proxy.Handle("sqs", "CreateQueue", func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
				forward(r).Write(rw)
			})
			if _, err := w.raw.CreateQueue(r.Context(), &api.CreateQueueInput{
				QueueName: ptr(malformedQueue), Attributes: map[string]string{"VisibilityTimeout": "77"},
			}); err != nil {
				panic(err)
			}
			return body
		})
		forward(r).Write(rw)
	})
	w.wantChanges(t, "a run", false,
		updated(malformedQueue, "tags were missing or different: remuda:fleet; messages were kept for 96h0m0s, not for 336h0m0s; a received message was hidden for 1m17s, not for 30s; a receive waited for 0s, not for 1s"),
		created(largeQueue, "7m0s"), created(spotQueue, "7m0s"))
}

func ptr(s string) *string { return &s }

// TestEnsureTooSoonAfterADeletion: SQS wants a minute between.
func TestEnsureTooSoonAfterADeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.proxy.Handle("sqs", "CreateQueue", func(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		awstest.Fail(rw, r, http.StatusBadRequest, "AWS.SimpleQueueService.QueueDeletedRecently", "You must wait 60 seconds after deleting a queue")
	})
	changes, err := w.Ensure(t.Context(), false)
	if !errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(err.Error(), "create queue remuda-large-spot: sqs:CreateQueue: ") || len(changes) != 0 {
		t.Errorf("changes %+v, error %v", changes, err)
	}
}
