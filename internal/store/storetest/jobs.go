package storetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/store"
)

// beyondFloat is an id that a number of JavaScript's kind does not hold. Its neighbours are the same number there.
const beyondFloat = 1<<53 + 1

var jobs = kind[lifecycle.Job]{
	KindOf: store.Jobs, noun: "a job",
	keys: []store.Key{
		jobKey(9), jobKey(10), jobKey(beyondFloat - 1), jobKey(beyondFloat), jobKey(beyondFloat + 1), jobKey(math.MaxInt64),
	},
	strange: []store.Key{jobKey(0), jobKey(1), jobKey(90)},
	full:    func(key store.Key) lifecycle.Job { return fullJob(jobID(key)) },
	bare:    func(key store.Key) lifecycle.Job { return lifecycle.Job{ID: jobID(key)} },
	create:  store.Store.CreateJob, update: store.Store.UpdateJob, due: store.Store.DueJobs,
	get: func(s store.Store, ctx context.Context, key store.Key) (lifecycle.Job, error) {
		return s.Job(ctx, jobID(key))
	},
	lists: map[string]func(context.Context, store.Store) ([]lifecycle.Job, error){
		"waiting": func(ctx context.Context, s store.Store) ([]lifecycle.Job, error) {
			page, err := s.WaitingJobs(ctx, jobPool, lifecycle.PageOf{})
			return page.Items, err
		},
		"due": func(ctx context.Context, s store.Store) ([]lifecycle.Job, error) {
			page, err := s.DueJobs(ctx, start.Add(time.Hour), lifecycle.PageOf{})
			return page.Items, err
		},
		"open": func(ctx context.Context, s store.Store) ([]lifecycle.Job, error) {
			return s.OpenJobsOfRun(ctx, repository, runID)
		},
	},
}

var _ = add(group{name: "jobs", tests: append(jobs.cases(),
	suiteTest{"open jobs of a run", testOpenJobs},
	suiteTest{"waiting jobs come by queuedAt and then by id", testWaitingOrder},
	suiteTest{"a job waits until it begins", testWaitingJobs},
	suiteTest{"by due", jobs.byDue},
	suiteTest{"more than a batch of them", testManyJobs},
)})

func jobKey(id int64) store.Key { return store.Key{fmt.Sprintf("%019d", id)} }

func jobID(key store.Key) int64 {
	id, err := strconv.ParseInt(key[0], 10, 64)
	if err != nil {
		panic(err)
	}
	return id
}

// jobPool is the pool of fullJob.
const jobPool = "small-jobs"

// fullJob has a value in every attribute.
func fullJob(id int64) lifecycle.Job {
	return lifecycle.Job{
		ID: id, Repository: repository, RunID: runID, RunAttempt: 2, Name: "build (1)", Workflow: "CI", Labels: []string{"remuda-small", "x64"},
		Pool: jobPool, Scope: "acme", State: lifecycle.JobWaiting, QueuedAt: start, RunnerName: "remuda-3-i-a",
		StartedAt: start.Add(time.Second), EndedAt: start.Add(time.Minute), Conclusion: "success", NotBefore: start.Add(time.Hour), Passed: 3, Reason: "it's \"queued\" — 100%",
		DueAt: start.Add(5 * time.Minute), Version: 1, ExpiresAt: start.Add(10 * time.Hour),
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
	open := must(w.Store.OpenJobsOfRun(t.Context(), repository, runID))(t)
	return slices.Sorted(slices.Values(idsOf(open)))
}

func testOpenJobs(t *testing.T, w world) {
	add := func(id int64, repository, run string, state lifecycle.JobState) {
		j := fullJob(id)
		j.Repository, j.RunID, j.State = repository, run, state
		jobs.put(t, w, j)
	}
	add(3, repository, runID, lifecycle.JobWaiting)
	add(1, repository, runID, lifecycle.JobRunning)
	add(2, repository, runID, lifecycle.JobDone)
	add(4, repository, runID+"1", lifecycle.JobWaiting)
	add(5, "acme/other", runID, lifecycle.JobWaiting)
	add(6, "o'brien/né \"x\"", "{}", lifecycle.JobWaiting)
	equal(t, "open", []int64{1, 3}, w.openOf(t, repository, runID))
	equal(t, "by their ids, those that are there", []int64{2, 3, 5}, slices.Sorted(slices.Values(idsOf(must(w.Store.JobsOf(t.Context(), []int64{5, 2, 99, 3}))(t)))))
	equal(t, "none", []int64(nil), idsOf(must(w.Store.JobsOf(t.Context(), nil))(t)))
	equal(t, "of another repository", []int64{5}, w.openOf(t, "acme/other", runID))
	equal(t, "of odd names", []int64{6}, w.openOf(t, "o'brien/né \"x\"", "{}"))
	equal(t, "of a run unheard of", []int64(nil), w.openOf(t, repository, "1"))

	jobs.change(t, w, func(j *lifecycle.Job) { j.State = lifecycle.JobDone }, jobKey(1)[0])
	equal(t, "after one is done", []int64{3}, w.openOf(t, repository, runID))
	jobs.change(t, w, func(j *lifecycle.Job) { j.State = lifecycle.JobWaiting }, jobKey(1)[0]) // it was a mistake
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
		jobs.put(t, w, j)
		want = append(want, j)
	}
	same := fullJob(1)
	same.QueuedAt = start.In(time.FixedZone("elsewhere", 7*60*60))
	jobs.put(t, w, same)
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
	jobs.put(t, w, late)
	equal(t, "after a late one took its place", append([]int64{3}, idsOf(want)...), w.waiting(t, jobPool, 2))
}

func testWaitingJobs(t *testing.T, w world) {
	add := func(id int64, pool string, state lifecycle.JobState) {
		j := fullJob(id)
		j.Pool, j.State = pool, state
		jobs.put(t, w, j)
	}
	add(1, jobPool, lifecycle.JobWaiting)
	add(2, jobPool, lifecycle.JobWaiting)
	add(3, jobPool, lifecycle.JobRunning)
	add(4, jobPool, lifecycle.JobDone)
	add(5, jobPool+"s", lifecycle.JobWaiting)
	add(6, "", lifecycle.JobWaiting) // its run's hosts serve it
	slotTables.seed(t, w)
	equal(t, "waiting", []int64{1, 2}, w.waiting(t, jobPool, 1))
	equal(t, "of another pool", []int64{5}, w.waiting(t, jobPool+"s", 1))
	equal(t, "of a pool unheard of", []int64(nil), w.waiting(t, "nowhere", 1))
	equal(t, "of no pool", []int64(nil), w.waiting(t, "", 1))

	jobs.change(t, w, func(j *lifecycle.Job) { j.State = lifecycle.JobRunning }, jobKey(1)[0])
	equal(t, "after one began", []int64{2}, w.waiting(t, jobPool, 1))
	jobs.change(t, w, func(j *lifecycle.Job) { j.State = lifecycle.JobDone }, jobKey(2)[0])
	equal(t, "after the other was cancelled", []int64(nil), w.waiting(t, jobPool, 1))
	jobs.change(t, w, func(j *lifecycle.Job) { j.State = lifecycle.JobWaiting }, jobKey(1)[0])
	equal(t, "after the first waits again", []int64{1}, w.waiting(t, jobPool, 1))
}

// testManyJobs has more jobs than a DynamoDB batch takes (100), queued at once.
func testManyJobs(t *testing.T, w world) {
	var want []int64
	for id := int64(1); id <= 130; id++ {
		jobs.put(t, w, fullJob(id))
		want = append(want, id)
	}
	for _, limit := range []int{0, 7, 1000} {
		equal(t, "waiting", want, w.waiting(t, jobPool, limit))
	}
	equal(t, "open", want, w.openOf(t, repository, runID))
	later := start.Add(time.Hour)
	due := all(t, 110, func(of lifecycle.PageOf) (jobPage, error) { return w.Store.DueJobs(t.Context(), later, of) })
	equal(t, "due", want, idsOf(due))
}

var slotTables = kind[slots.Table]{
	KindOf: store.SlotTables, noun: "a table of slots", blank: true,
	keys:   []store.Key{{jobPool}, {"other"}},
	full:   func(key store.Key) slots.Table { return fullTurns(key[0]) },
	bare:   func(key store.Key) slots.Table { return slots.Table{Pool: key[0]} },
	update: store.Store.UpdateSlotTable,
	get: func(s store.Store, ctx context.Context, key store.Key) (slots.Table, error) {
		return s.SlotTable(ctx, key[0])
	},
}

var _ = add(group{name: "turns", tests: append(slotTables.cases(),
	suiteTest{"a thousand open turns", testManyTurns},
	suiteTest{"whatever the pool is called", slotTables.oddKeys},
)})

func fullTurn(number int64) slots.Slot {
	return slots.Slot{
		Number: number, JobID: beyondFloat, Repository: repository, Scope: "acme", AssignedAt: start.Add(time.Duration(number)),
		HostKey: "a", Runner: "remuda-3-i-a", RunnerID: 1<<40 + 7, Started: true, Runs: beyondFloat + number, UnannouncedAt: start.Add(time.Duration(number)),
	}
}

// fullTurns has a value in every attribute.
func fullTurns(pool string) slots.Table {
	return slots.Table{Pool: pool, Assigned: beyondFloat, Version: 1, Open: []slots.Slot{
		fullTurn(1), {Number: 2, Repository: repository, Scope: repository, AssignedAt: start}, fullTurn(beyondFloat),
	}}
}

// testManyTurns has as many turns as a pool can have, each as long as GitHub and
// AWS allow: owners of 39 characters, repositories of 100.
func testManyTurns(t *testing.T, w world) {
	want := slots.Table{Pool: jobPool, Assigned: 100_000}
	for n := range int64(1000) {
		name := fmt.Sprintf("%s/%0100d", strings.Repeat("o", 39), n)
		want.Open = append(want.Open, slots.Slot{
			Number: 99_000 + n, JobID: beyondFloat + 7919*n, Repository: name, Scope: name, AssignedAt: start.Add(7919 * time.Duration(n)), Started: n%2 == 0, Runs: beyondFloat + n, UnannouncedAt: start.Add(7907 * time.Duration(n)),
			HostKey: fmt.Sprintf("AROAEXAMPLEEXAMPLE123:i-%017x", 104729*n), Runner: lifecycle.RunnerName(n, fmt.Sprintf("i-%017x", 104729*n)),
		})
	}
	slotTables.put(t, w, want)
	want.Version = 1
	equal(t, "turns", want, slotTables.stored(t, w, jobPool))
	want.Open = want.Open[1:]
	slotTables.replace(t, w, want)
	want.Version = 2
	equal(t, "turns after one ended", want, slotTables.stored(t, w, jobPool))
}
