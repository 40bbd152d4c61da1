package dynamo_test

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// jobsRow is the key of a row of the jobs table.
func jobsRow(key string) map[string]string { return map[string]string{"rowKey": key} }

func jobRow(id int64) map[string]string { return jobsRow(fmt.Sprintf("job/%019d", id)) }

// TestJobsAreInIndexesWhileTheyMust: an index costs a write at each change of
// its keys, and every list reads what is in it.
func TestJobsAreInIndexesWhileTheyMust(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	keysOf := func(it map[string]types.AttributeValue) []string {
		var names []string
		for _, name := range []string{"dueShard", "dueAt", "runKey", "waitingKey", "expiresAt"} {
			if it[name] != nil {
				names = append(names, name)
			}
		}
		return names
	}
	if err := errors.Join(w.CreateJob(t.Context(), newJob(1)), w.CreateWebhook(t.Context(), newWebhook("a"))); err != nil {
		t.Fatal(err)
	}
	h := newWebhook("a")
	h.DueAt, h.ExpiresAt = time.Time{}, began.Add(time.Hour)
	for _, step := range []struct {
		name   string
		change func(*lifecycle.Job)
		want   []string
	}{
		{"waiting", func(*lifecycle.Job) {}, []string{"dueShard", "dueAt", "runKey", "waitingKey"}},
		{"running", func(j *lifecycle.Job) { j.State = lifecycle.JobRunning }, []string{"dueShard", "dueAt", "runKey"}},
		{"waiting for the hosts of its run", func(j *lifecycle.Job) { j.State, j.Pool = lifecycle.JobWaiting, "" }, []string{"dueShard", "dueAt", "runKey"}},
		{"done", func(j *lifecycle.Job) {
			j.State, j.DueAt, j.ExpiresAt = lifecycle.JobDone, time.Time{}, began.Add(time.Hour)
		}, []string{"expiresAt"}},
	} {
		j, err := w.Job(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		step.change(&j)
		if _, err := w.UpdateJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, keysOf(w.item(t, "remuda-jobs", jobRow(1)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if diff := cmp.Diff([]string{"dueShard", "dueAt"}, keysOf(w.item(t, "remuda-jobs", jobsRow("webhook/a")))); diff != "" {
		t.Errorf("a webhook to be worked on (-want +got):\n%s", diff)
	}
	if _, err := w.UpdateWebhook(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"expiresAt"}, keysOf(w.item(t, "remuda-jobs", jobsRow("webhook/a")))); diff != "" {
		t.Errorf("a webhook that is done with (-want +got):\n%s", diff)
	}
}

// TestJobsThatWaitNoMore: an index lags behind its table, and its rows are read
// again. Here the row is changed behind the index's back.
func TestJobsThatWaitNoMore(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	for id := range int64(3) {
		if err := w.CreateJob(t.Context(), newJob(id+1)); err != nil {
			t.Fatal(err)
		}
	}
	w.set(t, "remuda-jobs", jobRow(1), "state", text(string(lifecycle.JobRunning)))
	w.set(t, "remuda-jobs", jobRow(2), "state", text(string(lifecycle.JobDone)))
	page, err := w.WaitingJobs(t.Context(), jobPool, lifecycle.PageOf{Limit: 1})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != 3 {
		t.Errorf("waiting: got %+v and error %v, want the third", page.Items, err)
	}
	open, err := w.OpenJobsOfRun(t.Context(), repository, runID)
	if err != nil || len(open) != 2 || open[0].ID != 1 || open[1].ID != 3 {
		t.Errorf("open: got %+v and error %v, want the first and the third", open, err)
	}
}

// TestDamagedJobsHideNoOther: a list has everything except the rows that were
// edited badly by hand, which are reported once.
func TestDamagedJobsHideNoOther(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	for id := range int64(4) {
		h := newWebhook(fmt.Sprint(id))
		if err := errors.Join(w.CreateJob(t.Context(), newJob(id)), w.CreateWebhook(t.Context(), h)); err != nil {
			t.Fatal(err)
		}
	}
	w.set(t, "remuda-jobs", jobRow(0), "labels", text(secret))
	w.set(t, "remuda-jobs", jobRow(2), "startedAt", text(secret))
	w.set(t, "remuda-jobs", jobsRow("webhook/1"), "job", text(secret))
	for range 2 {
		waiting, err := w.WaitingJobs(t.Context(), jobPool, lifecycle.PageOf{})
		due, dueErr := w.DueJobs(t.Context(), began.Add(time.Hour), lifecycle.PageOf{})
		open, openErr := w.OpenJobsOfRun(t.Context(), repository, runID)
		webhooks, webhooksErr := w.DueWebhooks(t.Context(), began, lifecycle.PageOf{})
		if err := errors.Join(err, dueErr, openErr, webhooksErr); err != nil {
			t.Fatal(err)
		}
		if len(waiting.Items) != 2 || len(due.Items) != 2 || len(open) != 2 || len(webhooks.Items) != 3 {
			t.Errorf("got %d waiting, %d due and %d open jobs, want 2 of each, and %d webhooks, want 3",
				len(waiting.Items), len(due.Items), len(open), len(webhooks.Items))
		}
	}
	w.wantLog(t, "leaving out a row", 3, "job/0000000000000000000", "job/0000000000000000002", "webhook/1", "labels", "startedAt")

	_, jobErr := w.Job(t.Context(), 2)
	_, webhookErr := w.Webhook(t.Context(), "1")
	for name, err := range map[string]error{"startedAt": jobErr, "attribute job": webhookErr} {
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), secret) {
			t.Errorf("read of the damaged row: got error %v, want one that names %s and nothing that is in it", err, name)
		}
	}
}

// TestDamagedTurns are an error, and never no turns: those would be given again.
func TestDamagedTurns(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	turns := slots.Table{Pool: jobPool, Assigned: 1, Open: []slots.Slot{{Number: 1, Repository: repository}}}
	if _, err := w.UpdateSlotTable(t.Context(), turns); err != nil {
		t.Fatal(err)
	}
	key := jobsRow("turns/" + jobPool)
	sound := w.item(t, "remuda-jobs", key)["open"].(*types.AttributeValueMemberB).Value
	for name, open := range map[string]types.AttributeValue{
		"no binary": text(secret),
		"no flate":  &types.AttributeValueMemberB{Value: []byte(secret)},
		"cut short": &types.AttributeValueMemberB{Value: sound[:len(sound)/2]},
		"no JSON":   &types.AttributeValueMemberB{Value: deflate(t, secret)},
		"no turns":  &types.AttributeValueMemberB{Value: deflate(t, `{"number":1}`)},
		// What is small may become very large.
		"a bomb": &types.AttributeValueMemberB{Value: bomb(t, "[", "]")},
	} {
		w.set(t, "remuda-jobs", key, "open", open)
		got, err := w.SlotTable(t.Context(), jobPool)
		if err == nil || !strings.Contains(err.Error(), "attribute open") || !strings.Contains(err.Error(), jobPool) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v and error %v, want one that names the attribute and nothing that is in it", name, got, err)
		}
	}
}

func deflate(t *testing.T, text string) []byte {
	t.Helper()
	return deflateTo(t, text, (*flate.Writer).Close)
}

// bomb is 64 MiB of spaces between before and after. One MiB is deflated, and
// stands there 64 times: deflating all takes seconds.
func bomb(t *testing.T, before, after string) []byte {
	t.Helper()
	block := func(text string) []byte { return deflateTo(t, text, (*flate.Writer).Flush) }
	return slices.Concat(block(before), bytes.Repeat(block(strings.Repeat(" ", 1<<20)), 64), deflate(t, after))
}

func deflateTo(t *testing.T, text string, end func(*flate.Writer) error) []byte {
	t.Helper()
	var small bytes.Buffer
	w, err := flate.NewWriter(&small, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := end(w); err != nil {
		t.Fatal(err)
	}
	return small.Bytes()
}

// TestTurnsThatCouldNotBeRead are not written.
func TestTurnsThatCouldNotBeRead(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	turns := slots.Table{Pool: jobPool, Open: slices.Repeat([]slots.Slot{{Repository: strings.Repeat("x", 1000)}}, 1100)}
	if _, err := w.UpdateSlotTable(t.Context(), turns); err == nil || !strings.Contains(err.Error(), jobPool) {
		t.Errorf("got error %v, want one that names the pool", err)
	}
	got, err := w.SlotTable(t.Context(), jobPool)
	if diff := cmp.Diff(slots.Table{Pool: jobPool}, got); diff != "" || err != nil {
		t.Errorf("error %v, turns (-want +got):\n%s", err, diff)
	}
}

// TestWatchersSeeNothingOfWhatIsSeenOnce, though it is in the same table.
func TestWatchersSeeNothingOfWhatIsSeenOnce(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "zzz"} {
		if err := w.SeeOnce(t.Context(), "token", id, began.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := w.AddEvents(t.Context(), []lifecycle.Event{newEvent(id)}); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := everyEvent(t, w.EventsSince, lifecycle.PageOf{})
	if diff := cmp.Diff([]string{"a", "zzz"}, reasons(found)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.wantLog(t, "leaving out a row", 0)
}
