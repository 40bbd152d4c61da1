package dynamo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// newWork is a job of the service render that waits.
func newWork(id string) model.Job {
	return model.NewJob("render", id, []byte(`{"film":"1"}`), model.JobPolicy{QueueTime: time.Hour}, began)
}

// newWorker is a worker of render that has never reported before.
func newWorker(id string) model.Worker {
	return model.Worker{Service: "render", ID: id, JobID: "a"}.WithHeartbeat("1.0", began)
}

func workRow(id string) map[string]string { return jobsRow("work/render/" + id) }

// TestWorkIsInIndexesWhileItMust: by pool as long as it is there, by due until it has ended.
func TestWorkIsInIndexesWhileItMust(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	if err := w.CreateWork(t.Context(), newWork("a")); err != nil {
		t.Fatal(err)
	}
	change := func(do func(model.Job) (model.Job, error)) map[string]types.AttributeValue {
		t.Helper()
		j, err := w.Work(t.Context(), "render", "a")
		if err == nil {
			j, err = do(j)
		}
		if err == nil {
			_, err = w.UpdateWork(t.Context(), j)
		}
		if err != nil {
			t.Fatal(err)
		}
		return w.item(t, "remuda-jobs", workRow("a"))
	}
	wants := func(name string, it map[string]types.AttributeValue, pool string, rest ...string) {
		t.Helper()
		var names []string
		for _, one := range []string{"dueAt", "dueShard", "expiresAt", "runKey", "waitingKey"} {
			if it[one] != nil {
				names = append(names, one)
			}
		}
		got, _ := plain(it)["pool"].(string)
		if diff := cmp.Diff(rest, names); diff != "" || got != pool {
			t.Errorf("%s: by pool as %q, want %q; attributes (-want +got):\n%s", name, got, pool, diff)
		}
	}
	wants("waiting", w.item(t, "remuda-jobs", workRow("a")), "work/render/waiting", "dueAt", "dueShard", "waitingKey")
	wants("running", change(func(j model.Job) (model.Job, error) { return j.Claim("w", began) }),
		"work/render/running", "dueAt", "dueShard", "waitingKey")
	wants("ended", change(func(j model.Job) (model.Job, error) {
		return j.Finish(model.JobAttempt{WorkerID: "w", Number: 1}, true, "", began)
	}), "work/render/succeeded", "expiresAt", "waitingKey")
}

// TestLogsAreSmall in the row, which is paid for with each line.
func TestLogsAreSmall(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	j := newWork("a")
	j.LogTail = strings.Repeat("frame 17 of 4711 is there, and took 20 ms\n", 1500)
	if err := w.CreateWork(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	stored := w.item(t, "remuda-jobs", workRow("a"))["logTail"].(*types.AttributeValueMemberB).Value
	if len(stored) > len(j.LogTail)/50 {
		t.Errorf("%d bytes of log are %d in the row", len(j.LogTail), len(stored))
	}
}

// TestDamagedWork is reported, and hides no other.
func TestDamagedWork(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b", "c"} {
		j, err := newWork(id).Claim("w", began)
		if err == nil {
			err = w.CreateWork(t.Context(), j)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, log := range map[string]types.AttributeValue{
		"no binary": text(secret),
		"no flate":  &types.AttributeValueMemberB{Value: []byte(secret)},
		"a bomb":    &types.AttributeValueMemberB{Value: bomb(t, "", "")},
	} {
		w.set(t, "remuda-jobs", workRow("b"), "logTail", log)
		_, err := w.Work(t.Context(), "render", "b")
		if err == nil || !strings.Contains(err.Error(), "job b of service render") || !strings.Contains(err.Error(), "attribute logTail") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got error %v, want one that names the job and the attribute", name, err)
		}
	}
	due, err := w.DueWork(t.Context(), began.Add(time.Hour), lifecycle.PageOf{})
	if err != nil || len(due.Items) != 2 {
		t.Errorf("got %d due and error %v, want 2", len(due.Items), err)
	}
	w.wantLog(t, "leaving out a row", 1, "work/render/b", "logTail")
}
