package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

var _ = add(group{name: "work", concurrent: true, tests: []suiteTest{
	{"a job comes back as it was written", testWorkRoundTrip},
	{"an id is taken once in a service", testWorkExists},
	{"an update needs the stored version", testWorkVersion},
	{"rows share nothing with their callers", testWorkAliasing},
	{"the longest payload and log", testWorkLong},
	{"waiting jobs come by age and then by id", testWaitingWork},
	{"what waits and runs is counted", testCountWork},
	{"no more is counted than is asked for", testCountWorkAtMost},
	{"jobs of a service by state", testListWork},
	{"by due", testWorkByDue},
	{"one of 64 claims a job", testOneClaimsWork},
	{"64 workers share 40 jobs", testWorkShared},
}})

// service is that of fullWork.
const service = "render"

// fullWork has a value in every attribute.
func fullWork(id string) model.Job {
	return model.Job{
		Service: service, ID: id, State: model.JobWaiting, Payload: []byte{0, 0xff, '"', 0xc3, '\n'}, WorkerID: "task/1", Attempt: 1,
		CreatedAt: start, StartedAt: start.Add(time.Second), ActivityAt: start.Add(time.Minute), EndedAt: start.Add(time.Hour),
		Reason: "it's \"stalled\" — 100%", LogTail: "line 1\nline 2: né\t\x00\n", LogBytes: math.MaxInt64,
		DueAt: start.Add(5 * time.Minute), Version: 1, ExpiresAt: start.Add(10 * time.Hour),
	}
}

func (w world) createWork(t *testing.T, jobs ...model.Job) {
	t.Helper()
	for _, j := range jobs {
		if err := w.Store.CreateWork(t.Context(), j); err != nil {
			t.Fatalf("CreateWork(%s): %v", j.ID, err)
		}
	}
}

func (w world) work(t *testing.T, id string) model.Job {
	t.Helper()
	j, err := w.Store.Work(t.Context(), service, id)
	if err != nil {
		t.Fatalf("Work(%s): %v", id, err)
	}
	return j
}

// changeWork updates a stored job.
func (w world) changeWork(t *testing.T, id string, change func(*model.Job)) {
	t.Helper()
	j := w.work(t, id)
	change(&j)
	if _, err := w.Store.UpdateWork(t.Context(), j); err != nil {
		t.Fatalf("UpdateWork(%s): %v", id, err)
	}
}

func (w world) waitingWork(t *testing.T, service string, limit int) []string {
	t.Helper()
	ids, err := w.Store.WaitingWork(t.Context(), service, limit)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func (w world) countWork(t *testing.T, service string) model.JobCount {
	t.Helper()
	n, err := w.Store.CountWork(t.Context(), service, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (w world) dueWork(t *testing.T, now time.Time) []string {
	t.Helper()
	var ids []string
	for _, j := range all(t, 2, func(of lifecycle.PageOf) (lifecycle.Page[model.Job], error) {
		return w.Store.DueWork(t.Context(), now, of)
	}) {
		ids = append(ids, j.Service+"/"+j.ID)
	}
	return ids
}

func testWorkRoundTrip(t *testing.T, w world) {
	want := fullWork("a")
	isFull(t, want)
	w.createWork(t, want)
	got := w.work(t, "a")
	equal(t, "job", want, got)
	isUTC(t, "createdAt", got.CreatedAt)
	due, err := w.Store.DueWork(t.Context(), start.Add(time.Hour), lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "due", []model.Job{want}, due.Items)

	w.createWork(t, model.Job{Service: service, ID: "b", State: model.JobFailed, Payload: []byte{}, Version: 7})
	equal(t, "job without attributes", model.Job{Service: service, ID: "b", State: model.JobFailed, Version: 1}, w.work(t, "b"))
}

func testWorkExists(t *testing.T, w world) {
	w.createWork(t, fullWork("a"))
	wantError(t, "second create", w.Store.CreateWork(t.Context(), model.Job{Service: service, ID: "a"}), lifecycle.ErrExists)
	equal(t, "job", fullWork("a"), w.work(t, "a"))
	other := fullWork("a")
	other.Service = "render-2"
	w.createWork(t, other, fullWork("A"))
	equal(t, "job after those of like names", fullWork("a"), w.work(t, "a"))
}

func testWorkVersion(t *testing.T, w world) {
	w.createWork(t, fullWork("a"))
	want := model.Job{Service: service, ID: "a", State: model.JobSucceeded, CreatedAt: start, Version: 1}
	want.EndedAt = start.In(time.FixedZone("elsewhere", 2*60*60))
	got, err := w.Store.UpdateWork(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	want.Version = 2
	equal(t, "what update returns", want, got)
	isUTC(t, "endedAt as update returns it", got.EndedAt)
	for _, version := range []int64{-1, 0, 1, 3} {
		stale := fullWork("a")
		stale.Version = version
		_, err := w.Store.UpdateWork(t.Context(), stale)
		wantError(t, "update with another version", err, lifecycle.ErrConflict)
	}
	equal(t, "job", want, w.work(t, "a"))

	_, err = w.Store.UpdateWork(t.Context(), fullWork("b"))
	wantError(t, "update of an unknown job", err, lifecycle.ErrConflict)
	_, err = w.Store.Work(t.Context(), service, "b")
	wantError(t, "read of an unknown job", err, lifecycle.ErrNotFound)
	_, err = w.Store.Work(t.Context(), "other", "a")
	wantError(t, "read in another service", err, lifecycle.ErrNotFound)
}

func testWorkAliasing(t *testing.T, w world) {
	scribble := func(j model.Job) { j.Payload[0] = 'X' }
	j := fullWork("a")
	w.createWork(t, j)
	scribble(j)
	scribble(w.work(t, "a"))
	page, err := w.Store.DueWork(t.Context(), start.Add(time.Hour), lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	scribble(page.Items[0])
	equal(t, "job after callers changed their own", fullWork("a"), w.work(t, "a"))

	j = fullWork("a")
	updated, err := w.Store.UpdateWork(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	scribble(j)
	scribble(updated)
	want := fullWork("a")
	want.Version = 2
	equal(t, "job after both sides of an update changed their own", want, w.work(t, "a"))
}

// testWorkLong has what is hard to make small: all that a row may have.
func testWorkLong(t *testing.T, w world) {
	noise := make([]byte, model.MaxJobPayload)
	state := uint32(1)
	for i := range noise {
		state = state*1664525 + 1013904223
		noise[i] = byte(state >> 24)
	}
	var log strings.Builder
	for i := 0; log.Len() < model.MaxLogTail; i++ {
		log.WriteByte(' ' + noise[i]%95)
	}
	want := fullWork("a")
	want.Payload, want.LogTail = noise, log.String()
	w.createWork(t, want)
	equal(t, "job", want, w.work(t, "a"))
}

func testWaitingWork(t *testing.T, w world) {
	ids := []string{"b", "A", "a", "a.1", "a-1", "10", "9"}
	var want []model.Job
	for i, id := range ids {
		j := fullWork(id)
		j.CreatedAt = start.Add(time.Duration(i%3-1) * time.Nanosecond)
		w.createWork(t, j)
		want = append(want, j)
	}
	slices.SortFunc(want, func(a, b model.Job) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	var order []string
	for _, j := range want {
		order = append(order, j.ID)
	}
	other := fullWork("other")
	other.Service = "render-2"
	running, ended := fullWork("running"), fullWork("ended")
	running.State, ended.State = model.JobRunning, model.JobFailed
	w.createWork(t, other, running, ended)
	w.createJobs(t, fullJob(1)) // waits for a host
	for _, limit := range []int{1, 2, len(order), 1000} {
		equal(t, fmt.Sprintf("at most %d", limit), order[:min(limit, len(order))], w.waitingWork(t, service, limit))
	}
	equal(t, "of another service", []string{"other"}, w.waitingWork(t, "render-2", 10))
	equal(t, "of a service unheard of", []string(nil), w.waitingWork(t, "rende", 10))

	w.changeWork(t, order[0], func(j *model.Job) { j.State = model.JobRunning })
	w.changeWork(t, order[1], func(j *model.Job) { j.State = model.JobSucceeded })
	equal(t, "after one began and one ended", order[2:], w.waitingWork(t, service, 10))
	w.changeWork(t, order[0], func(j *model.Job) { j.State = model.JobWaiting })
	equal(t, "after the first waits again", append(order[:1:1], order[2:]...), w.waitingWork(t, service, 10))
}

func testCountWork(t *testing.T, w world) {
	equal(t, "of a service without jobs", model.JobCount{}, w.countWork(t, service))
	add := func(n int, of string, state model.JobState) {
		for i := range n {
			j := fullWork(fmt.Sprintf("%s-%d", state, i))
			j.Service, j.State = of, state
			w.createWork(t, j)
		}
	}
	add(130, service, model.JobWaiting)
	add(3, service, model.JobRunning)
	add(2, service, model.JobSucceeded)
	add(2, service, model.JobFailed)
	add(1, "render-2", model.JobRunning)
	equal(t, "count", model.JobCount{Waiting: 130, Running: 3}, w.countWork(t, service))
	equal(t, "count of another", model.JobCount{Running: 1}, w.countWork(t, "render-2"))
	w.changeWork(t, "waiting-0", func(j *model.Job) { j.State = model.JobRunning })
	w.changeWork(t, "running-0", func(j *model.Job) { j.State = model.JobFailed })
	equal(t, "count after a claim and an end", model.JobCount{Waiting: 129, Running: 3}, w.countWork(t, service))
}

func testCountWorkAtMost(t *testing.T, w world) {
	for i := range 60 {
		j := fullWork(fmt.Sprint(i))
		if i%2 == 0 {
			j.State = model.JobRunning
		}
		w.createWork(t, j)
	}
	for _, atMost := range []int{0, 1, 29, 30, 31, math.MaxInt} {
		n, err := w.Store.CountWork(t.Context(), service, atMost)
		if err != nil {
			t.Fatal(err)
		}
		want := min(atMost, 30)
		equal(t, fmt.Sprintf("at most %d", atMost), model.JobCount{Waiting: want, Running: want}, n)
	}
}

func (w world) listWork(t *testing.T, service string, limit int, states ...model.JobState) []string {
	t.Helper()
	var ids []string
	for _, j := range all(t, limit, func(of lifecycle.PageOf) (lifecycle.Page[model.Job], error) {
		return w.Store.ListWork(t.Context(), service, states, of)
	}) {
		equal(t, "service of "+j.ID, service, j.Service)
		ids = append(ids, j.ID)
	}
	return ids
}

func testListWork(t *testing.T, w world) {
	var ids []string
	byState := map[model.JobState][]string{}
	for i := range 12 {
		j := fullWork(fmt.Sprintf("job-%02d", 11-i)) // neither by id nor as they were created
		j.State = model.JobStates[i%4]
		j.CreatedAt = start.Add(time.Duration(i/5) * time.Second)
		w.createWork(t, j)
	}
	for _, i := range []int{4, 3, 2, 1, 0, 9, 8, 7, 6, 5, 11, 10} {
		id := fmt.Sprintf("job-%02d", 11-i)
		ids = append(ids, id)
		state := model.JobStates[i%4]
		byState[state] = append(byState[state], id)
	}
	other := fullWork("job-99")
	other.Service = "render-2"
	w.createWork(t, other)
	w.createJobs(t, fullJob(1))
	for _, limit := range []int{1, 2, 5, 12, 0} {
		equal(t, fmt.Sprintf("all, %d at once", limit), ids, w.listWork(t, service, limit, model.JobStates...))
		for state, want := range byState {
			equal(t, fmt.Sprintf("%s, %d at once", state, limit), want, w.listWork(t, service, limit, state))
		}
		waitingOrFailed := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
			return !slices.Contains(byState[model.JobWaiting], id) && !slices.Contains(byState[model.JobFailed], id)
		})
		equal(t, fmt.Sprintf("two states, %d at once", limit), waitingOrFailed, w.listWork(t, service, limit, model.JobFailed, model.JobWaiting))
	}
	equal(t, "of no state", []string(nil), w.listWork(t, service, 5))
	equal(t, "of another service", []string{"job-99"}, w.listWork(t, "render-2", 5, model.JobStates...))
	page, err := w.Store.ListWork(t.Context(), service, model.JobStates[:1], lifecycle.PageOf{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := fullWork(byState[model.JobWaiting][0])
	equal(t, "a job of the list", want, page.Items[0])

	w.changeWork(t, ids[0], func(j *model.Job) { j.State = model.JobFailed })
	equal(t, "after one failed", ids, w.listWork(t, service, 5, model.JobStates...))
	if got := w.listWork(t, service, 5, model.JobFailed); !slices.Contains(got, ids[0]) {
		t.Errorf("%s failed and is not among %v", ids[0], got)
	}
	_, err = w.Store.ListWork(t.Context(), service, model.JobStates, lifecycle.PageOf{After: "nonsense"})
	wantError(t, "a token of nobody's", err, lifecycle.ErrPageToken)
}

func testWorkByDue(t *testing.T, w world) {
	add := func(service, id string, due time.Time) {
		j := fullWork(id)
		j.Service, j.State, j.DueAt = service, model.JobRunning, due
		w.createWork(t, j)
	}
	add(service, "late", start.Add(-time.Hour))
	add(service, "b", start)
	add(service, "a", start)
	add("archive", "z", start)
	add(service, "soon", start.Add(time.Nanosecond))
	add(service, "never", time.Time{})
	w.createJobs(t, fullJob(1))
	w.createWebhooks(t, fullWebhook("a"))
	equal(t, "the longest due first", []string{"render/late", "archive/z", "render/a", "render/b"}, w.dueWork(t, start))
	equal(t, "a nanosecond later", 5, len(w.dueWork(t, start.Add(time.Nanosecond))))
	w.changeWork(t, "a", func(j *model.Job) { j.DueAt = start.Add(time.Minute) })
	w.changeWork(t, "late", func(j *model.Job) { j.State, j.DueAt = model.JobFailed, time.Time{} })
	equal(t, "after one was put off and one ended", []string{"archive/z", "render/b"}, w.dueWork(t, start))
	equal(t, "jobs of GitHub", []int64{1}, w.dueJobs(t, start.Add(time.Hour)))
}

// testOneClaimsWork: all of them read it while it waits.
func testOneClaimsWork(t *testing.T, w world) {
	w.createWork(t, fullWork("a"))
	winner := make(chan string, writers)
	wantOneWinner(t, race(t, lifecycle.ErrConflict, func(i int) error {
		id := fmt.Sprintf("worker-%d", i)
		j, err := fullWork("a").Claim(id, start)
		if err == nil {
			_, err = w.Store.UpdateWork(t.Context(), j)
		}
		if err == nil {
			winner <- id
		}
		return err
	}))
	got := w.work(t, "a")
	equal(t, "its worker", <-winner, got.WorkerID)
	equal(t, "its state and version", fmt.Sprint(model.JobRunning, 2), fmt.Sprint(got.State, got.Version))
}

// testWorkShared: each worker takes jobs until there are none, each time the
// oldest that it can get.
func testWorkShared(t *testing.T, w world) {
	const jobs = 40
	for i := range jobs {
		w.createWork(t, fullWork(fmt.Sprintf("job-%02d", i)))
	}
	var mu sync.Mutex
	taken := map[string]int{}
	race(t, nil, func(i int) error {
		for {
			ids, err := w.Store.WaitingWork(t.Context(), service, jobs)
			if err != nil || len(ids) == 0 {
				return err
			}
			id := ids[i%len(ids)]
			j, err := w.Store.Work(t.Context(), service, id)
			if err == nil {
				j, err = j.Claim(fmt.Sprintf("worker-%d", i), start)
			}
			if err == nil {
				_, err = w.Store.UpdateWork(t.Context(), j)
			}
			switch {
			case err == nil:
				mu.Lock()
				taken[id]++
				mu.Unlock()
			case !errors.Is(err, lifecycle.ErrConflict):
				return err
			}
		}
	})
	for i := range jobs {
		id := fmt.Sprintf("job-%02d", i)
		if j := w.work(t, id); taken[id] != 1 || j.Attempt != 2 || j.Version != 2 {
			t.Errorf("%s was claimed %d times, and is of attempt %d, version %d; want once, 2, 2", id, taken[id], j.Attempt, j.Version)
		}
	}
	equal(t, "count", model.JobCount{Running: jobs}, w.countWork(t, service))
}
