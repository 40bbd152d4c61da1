package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "jobs", tests: []suiteTest{
	{"a job comes back as it was written", testJobRoundTrip},
	{"an id is taken once", testJobExists},
	{"an update needs the stored version", testJobVersion},
	{"rows share nothing with their callers", testJobAliasing},
	{"open jobs of a run", testOpenJobs},
	{"waiting jobs come by queuedAt and then by id", testWaitingOrder},
	{"a job waits until it begins", testWaitingJobs},
	{"by due", testJobsByDue},
	{"more than a batch of them", testManyJobs},
}})

// jobPool is the pool of fullJob.
const jobPool = "small-jobs"

// fullJob has a value in every attribute.
func fullJob(id int64) lifecycle.Job {
	return lifecycle.Job{
		ID: id, Repository: repository, RunID: runID, RunAttempt: 2, Labels: []string{"remuda-small", "x64"},
		Pool: jobPool, Scope: "acme", State: lifecycle.JobWaiting, QueuedAt: start, RunnerName: "remuda-3-i-a",
		StartedAt: start.Add(time.Second), EndedAt: start.Add(time.Minute), NotBefore: start.Add(time.Hour), Passed: 3, Reason: "it's \"queued\" — 100%",
		DueAt: start.Add(5 * time.Minute), Version: 1, ExpiresAt: start.Add(10 * time.Hour),
	}
}

func (w world) createJobs(t *testing.T, jobs ...lifecycle.Job) {
	t.Helper()
	for _, j := range jobs {
		if err := w.Store.CreateJob(t.Context(), j); err != nil {
			t.Fatalf("CreateJob(%d): %v", j.ID, err)
		}
	}
}

func (w world) job(t *testing.T, id int64) lifecycle.Job {
	t.Helper()
	j, err := w.Store.Job(t.Context(), id)
	if err != nil {
		t.Fatalf("Job(%d): %v", id, err)
	}
	return j
}

// changeJob updates a stored job.
func (w world) changeJob(t *testing.T, id int64, change func(*lifecycle.Job)) {
	t.Helper()
	j := w.job(t, id)
	change(&j)
	if _, err := w.Store.UpdateJob(t.Context(), j); err != nil {
		t.Fatalf("UpdateJob(%d): %v", id, err)
	}
}

func idsOf(jobs []lifecycle.Job) []int64 {
	var ids []int64
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// waiting are the ids of a pool's waiting jobs, in their order.
func (w world) waiting(t *testing.T, pool string, limit int) []int64 {
	t.Helper()
	return idsOf(all(t, limit, func(of lifecycle.PageOf) (jobPage, error) { return w.Store.WaitingJobs(t.Context(), pool, of) }))
}

// openOf are the ids of a run's open jobs, which come in any order, sorted.
func (w world) openOf(t *testing.T, repository, runID string) []int64 {
	t.Helper()
	open, err := w.Store.OpenJobsOfRun(t.Context(), repository, runID)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(idsOf(open)))
}

func (w world) dueJobs(t *testing.T, now time.Time) []int64 {
	t.Helper()
	return idsOf(all(t, 2, func(of lifecycle.PageOf) (jobPage, error) { return w.Store.DueJobs(t.Context(), now, of) }))
}

func testJobRoundTrip(t *testing.T, w world) {
	want := fullJob(math.MaxInt64)
	isFull(t, want)
	w.createJobs(t, want)
	got := w.job(t, math.MaxInt64)
	equal(t, "job", want, got)
	isUTC(t, "queuedAt", got.QueuedAt)
	for name, list := range map[string][]lifecycle.Job{
		"waiting": all(t, 0, func(of lifecycle.PageOf) (jobPage, error) { return w.Store.WaitingJobs(t.Context(), jobPool, of) }),
		"due": all(t, 0, func(of lifecycle.PageOf) (jobPage, error) {
			return w.Store.DueJobs(t.Context(), start.Add(time.Hour), of)
		}),
	} {
		equal(t, name, []lifecycle.Job{want}, list)
	}
	open, err := w.Store.OpenJobsOfRun(t.Context(), repository, runID)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "open", []lifecycle.Job{want}, open)

	w.createJobs(t, lifecycle.Job{ID: 1, Labels: []string{}, Version: 7})
	equal(t, "job without attributes", lifecycle.Job{ID: 1, Version: 1}, w.job(t, 1))
}

func testJobExists(t *testing.T, w world) {
	w.createJobs(t, fullJob(beyondFloat))
	wantError(t, "second create", w.Store.CreateJob(t.Context(), lifecycle.Job{ID: beyondFloat}), lifecycle.ErrExists)
	equal(t, "job", fullJob(beyondFloat), w.job(t, beyondFloat))
	w.createJobs(t, fullJob(beyondFloat-1), fullJob(beyondFloat+1)) // the same as floating point numbers
	equal(t, "job after its neighbours", fullJob(beyondFloat), w.job(t, beyondFloat))
}

func testJobVersion(t *testing.T, w world) {
	w.createJobs(t, fullJob(1))
	want := lifecycle.Job{ID: 1, Repository: repository, RunID: runID, State: lifecycle.JobDone, Version: 1}
	want.QueuedAt = start.In(time.FixedZone("elsewhere", 2*60*60))
	got, err := w.Store.UpdateJob(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	want.Version = 2
	equal(t, "what update returns", want, got)
	isUTC(t, "queuedAt as update returns it", got.QueuedAt)
	for _, version := range []int64{-1, 0, 1, 3} {
		stale := fullJob(1)
		stale.Version = version
		_, err := w.Store.UpdateJob(t.Context(), stale)
		wantError(t, "update with another version", err, lifecycle.ErrConflict)
	}
	equal(t, "job", want, w.job(t, 1))

	_, err = w.Store.UpdateJob(t.Context(), fullJob(2))
	wantError(t, "update of an unknown job", err, lifecycle.ErrConflict)
	for _, id := range []int64{0, 2, 10} {
		_, err = w.Store.Job(t.Context(), id)
		wantError(t, "read of an unknown job", err, lifecycle.ErrNotFound)
	}
}

func testJobAliasing(t *testing.T, w world) {
	scribble := func(j lifecycle.Job) { j.Labels[0] = "scribbled" }
	j := fullJob(1)
	w.createJobs(t, j)
	scribble(j)
	equal(t, "job after the caller changed its own", fullJob(1), w.job(t, 1))
	scribble(w.job(t, 1))
	page, err := w.Store.WaitingJobs(t.Context(), jobPool, lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	scribble(page.Items[0])
	open, err := w.Store.OpenJobsOfRun(t.Context(), repository, runID)
	if err != nil {
		t.Fatal(err)
	}
	scribble(open[0])
	equal(t, "job after readers changed their own", fullJob(1), w.job(t, 1))

	j = fullJob(1)
	updated, err := w.Store.UpdateJob(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	scribble(j)
	scribble(updated)
	want := fullJob(1)
	want.Version = 2
	equal(t, "job after both sides of an update changed their own", want, w.job(t, 1))
}

func testOpenJobs(t *testing.T, w world) {
	add := func(id int64, repository, run string, state lifecycle.JobState) {
		j := fullJob(id)
		j.Repository, j.RunID, j.State = repository, run, state
		w.createJobs(t, j)
	}
	add(3, repository, runID, lifecycle.JobWaiting)
	add(1, repository, runID, lifecycle.JobRunning)
	add(2, repository, runID, lifecycle.JobDone)
	add(4, repository, runID+"1", lifecycle.JobWaiting)
	add(5, "acme/other", runID, lifecycle.JobWaiting)
	add(6, "o'brien/né \"x\"", "{}", lifecycle.JobWaiting)
	equal(t, "open", []int64{1, 3}, w.openOf(t, repository, runID))
	equal(t, "of another repository", []int64{5}, w.openOf(t, "acme/other", runID))
	equal(t, "of odd names", []int64{6}, w.openOf(t, "o'brien/né \"x\"", "{}"))
	equal(t, "of a run unheard of", []int64(nil), w.openOf(t, repository, "1"))

	w.changeJob(t, 1, func(j *lifecycle.Job) { j.State = lifecycle.JobDone })
	equal(t, "after one is done", []int64{3}, w.openOf(t, repository, runID))
	w.changeJob(t, 1, func(j *lifecycle.Job) { j.State = lifecycle.JobWaiting }) // it was a mistake
	equal(t, "after it is open again", []int64{1, 3}, w.openOf(t, repository, runID))
}

// testWaitingOrder: ids beyond 2^53 and times that differ by a nanosecond.
func testWaitingOrder(t *testing.T, w world) {
	ids := []int64{9, 10, 2, 1 << 31, beyondFloat - 1, beyondFloat, beyondFloat + 1, math.MaxInt64}
	var want []lifecycle.Job
	for i, id := range ids {
		j := fullJob(id)
		j.QueuedAt = start
		switch i % 4 {
		case 1:
			j.QueuedAt = start.Add(-time.Nanosecond)
		case 2:
			j.QueuedAt = start.Add(time.Nanosecond)
		}
		w.createJobs(t, j)
		want = append(want, j)
	}
	same := fullJob(1)
	same.QueuedAt = start.In(time.FixedZone("elsewhere", 7*60*60))
	w.createJobs(t, same)
	want = append(want, same)
	slices.SortFunc(want, func(a, b lifecycle.Job) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	for _, limit := range []int{0, 1, 2, 3, len(want), 1000} {
		equal(t, fmt.Sprintf("%d a page", limit), idsOf(want), w.waiting(t, jobPool, limit))
	}

	late := fullJob(3)
	late.QueuedAt = start.Add(-time.Hour)
	w.createJobs(t, late)
	equal(t, "after a late one took its place", append([]int64{3}, idsOf(want)...), w.waiting(t, jobPool, 2))
}

func testWaitingJobs(t *testing.T, w world) {
	add := func(id int64, pool string, state lifecycle.JobState) {
		j := fullJob(id)
		j.Pool, j.State = pool, state
		w.createJobs(t, j)
	}
	add(1, jobPool, lifecycle.JobWaiting)
	add(2, jobPool, lifecycle.JobWaiting)
	add(3, jobPool, lifecycle.JobRunning)
	add(4, jobPool, lifecycle.JobDone)
	add(5, jobPool+"s", lifecycle.JobWaiting)
	add(6, "", lifecycle.JobWaiting) // its run's hosts serve it
	if _, err := w.Store.UpdateSlotTable(t.Context(), fullTurns(jobPool)); err != nil {
		t.Fatal(err)
	}
	equal(t, "waiting", []int64{1, 2}, w.waiting(t, jobPool, 1))
	equal(t, "of another pool", []int64{5}, w.waiting(t, jobPool+"s", 1))
	equal(t, "of a pool unheard of", []int64(nil), w.waiting(t, "nowhere", 1))
	equal(t, "of no pool", []int64(nil), w.waiting(t, "", 1))

	w.changeJob(t, 1, func(j *lifecycle.Job) { j.State = lifecycle.JobRunning })
	equal(t, "after one began", []int64{2}, w.waiting(t, jobPool, 1))
	w.changeJob(t, 2, func(j *lifecycle.Job) { j.State = lifecycle.JobDone })
	equal(t, "after the other was cancelled", []int64(nil), w.waiting(t, jobPool, 1))
	w.changeJob(t, 1, func(j *lifecycle.Job) { j.State = lifecycle.JobWaiting })
	equal(t, "after the first waits again", []int64{1}, w.waiting(t, jobPool, 1))
}

func testJobsByDue(t *testing.T, w world) {
	for id, due := range map[int64]time.Time{
		7: start.Add(-time.Hour), 10: start, 9: start, beyondFloat: start, 1: start.Add(time.Nanosecond), 2: {},
	} {
		j := fullJob(id)
		j.DueAt = due
		w.createJobs(t, j)
	}
	h := fullWebhook("a")
	h.DueAt = start
	w.createWebhooks(t, h) // is no job
	equal(t, "the longest due first", []int64{7, 9, 10, beyondFloat}, w.dueJobs(t, start))
	equal(t, "a nanosecond later", []int64{7, 9, 10, beyondFloat, 1}, w.dueJobs(t, start.Add(time.Nanosecond)))
	equal(t, "long before", []int64(nil), w.dueJobs(t, start.Add(-2*time.Hour)))

	w.changeJob(t, 9, func(j *lifecycle.Job) { j.State, j.DueAt = lifecycle.JobDone, time.Time{} })
	w.changeJob(t, 7, func(j *lifecycle.Job) { j.DueAt = start.Add(time.Minute) })
	equal(t, "after one is done and one later", []int64{10, beyondFloat}, w.dueJobs(t, start))
}

// testManyJobs has more jobs than a DynamoDB batch takes (100), queued at once.
func testManyJobs(t *testing.T, w world) {
	var want []int64
	for id := int64(1); id <= 130; id++ {
		w.createJobs(t, fullJob(id))
		want = append(want, id)
	}
	for _, limit := range []int{0, 7, 1000} {
		equal(t, "waiting", want, w.waiting(t, jobPool, limit))
	}
	equal(t, "open", want, w.openOf(t, repository, runID))
	equal(t, "due", want, w.dueJobs(t, start.Add(time.Hour)))
}
