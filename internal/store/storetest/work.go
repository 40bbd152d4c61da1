package storetest

import (
	"context"
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
	"github.com/remuda-ci/remuda/internal/store"
)

var work = kind[model.Job]{
	KindOf: store.Work, noun: "a job",
	keys:    []store.Key{{"archive", "z"}, {service, "a"}, {service, "b"}, {service, "late"}, {service + "-2", "a"}, {service + "-2", "b"}},
	strange: []store.Key{{service, "A"}, {"other", "a"}},
	full: func(key store.Key) model.Job {
		j := fullWork(key[1])
		j.Service = key[0]
		return j
	},
	bare:   func(key store.Key) model.Job { return model.Job{Service: key[0], ID: key[1], State: model.JobFailed} },
	create: store.Store.CreateWork, update: store.Store.UpdateWork, due: store.Store.DueWork,
	get: func(s store.Store, ctx context.Context, key store.Key) (model.Job, error) {
		return s.Work(ctx, key[0], key[1])
	},
	lists: map[string]func(context.Context, store.Store) ([]model.Job, error){
		"due": func(ctx context.Context, s store.Store) ([]model.Job, error) {
			page, err := s.DueWork(ctx, start.Add(time.Hour), lifecycle.PageOf{})
			return page.Items, err
		},
	},
}

var _ = add(group{name: "work", tests: append(work.cases(),
	suiteTest{"the longest payload and log", testWorkLong},
	suiteTest{"waiting jobs come by age and then by id", testWaitingWork},
	suiteTest{"what waits and runs is counted", testCountWork},
	suiteTest{"no more is counted than is asked for", testCountWorkAtMost},
	suiteTest{"jobs of a service by state", testListWork},
	suiteTest{"by due", work.byDue},
), concurrent: []suiteTest{
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
		SilentWorkerID: "task/0", SilentSince: start.Add(2 * time.Minute),
		Reason: "it's \"stalled\" — 100%", LogTail: "line 1\nline 2: né\t\x00\n", LogBytes: math.MaxInt64,
		DueAt: start.Add(5 * time.Minute), Version: 1, ExpiresAt: start.Add(10 * time.Hour),
	}
}

func (w world) waitingWork(t *testing.T, service string, limit int) []string {
	t.Helper()
	ids := must(w.Store.WaitingWork(t.Context(), service, limit))(t)
	return ids
}

func (w world) countWork(t *testing.T, service string) model.JobCount {
	t.Helper()
	n := must(w.Store.CountWork(t.Context(), service, 1000))(t)
	return n
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
	work.put(t, w, want)
	equal(t, "job", want, work.stored(t, w, service, "a"))
}

func testWaitingWork(t *testing.T, w world) {
	ids := []string{"b", "A", "a", "a.1", "a-1", "10", "9"}
	var want []model.Job
	for i, id := range ids {
		j := fullWork(id)
		j.CreatedAt = start.Add(time.Duration(i%3-1) * time.Nanosecond)
		work.put(t, w, j)
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
	work.put(t, w, other, running, ended)
	jobs.seed(t, w) // waits for a host
	for _, limit := range []int{1, 2, len(order), 1000} {
		equal(t, fmt.Sprintf("at most %d", limit), order[:min(limit, len(order))], w.waitingWork(t, service, limit))
	}
	equal(t, "of another service", []string{"other"}, w.waitingWork(t, "render-2", 10))
	equal(t, "of a service unheard of", []string(nil), w.waitingWork(t, "rende", 10))

	work.change(t, w, func(j *model.Job) { j.State = model.JobRunning }, service, order[0])
	work.change(t, w, func(j *model.Job) { j.State = model.JobSucceeded }, service, order[1])
	equal(t, "after one began and one ended", order[2:], w.waitingWork(t, service, 10))
	work.change(t, w, func(j *model.Job) { j.State = model.JobWaiting }, service, order[0])
	equal(t, "after the first waits again", append(order[:1:1], order[2:]...), w.waitingWork(t, service, 10))
}

func testCountWork(t *testing.T, w world) {
	equal(t, "of a service without jobs", model.JobCount{}, w.countWork(t, service))
	add := func(n int, of string, state model.JobState) {
		for i := range n {
			j := fullWork(fmt.Sprintf("%s-%d", state, i))
			j.Service, j.State = of, state
			work.put(t, w, j)
		}
	}
	add(130, service, model.JobWaiting)
	add(3, service, model.JobRunning)
	add(2, service, model.JobSucceeded)
	add(2, service, model.JobFailed)
	add(1, "render-2", model.JobRunning)
	equal(t, "count", model.JobCount{Waiting: 130, Running: 3}, w.countWork(t, service))
	equal(t, "count of another", model.JobCount{Running: 1}, w.countWork(t, "render-2"))
	work.change(t, w, func(j *model.Job) { j.State = model.JobRunning }, service, "waiting-0")
	work.change(t, w, func(j *model.Job) { j.State = model.JobFailed }, service, "running-0")
	equal(t, "count after a claim and an end", model.JobCount{Waiting: 129, Running: 3}, w.countWork(t, service))
}

func testCountWorkAtMost(t *testing.T, w world) {
	for i := range 60 {
		j := fullWork(fmt.Sprint(i))
		if i%2 == 0 {
			j.State = model.JobRunning
		}
		work.put(t, w, j)
	}
	for _, atMost := range []int{0, 1, 29, 30, 31, math.MaxInt} {
		n := must(w.Store.CountWork(t.Context(), service, atMost))(t)
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
		work.put(t, w, j)
	}
	for _, i := range []int{4, 3, 2, 1, 0, 9, 8, 7, 6, 5, 11, 10} {
		id := fmt.Sprintf("job-%02d", 11-i)
		ids = append(ids, id)
		state := model.JobStates[i%4]
		byState[state] = append(byState[state], id)
	}
	other := fullWork("job-99")
	other.Service = "render-2"
	work.put(t, w, other)
	jobs.seed(t, w)
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
	page := must(w.Store.ListWork(t.Context(), service, model.JobStates[:1], lifecycle.PageOf{Limit: 1}))(t)
	want := fullWork(byState[model.JobWaiting][0])
	equal(t, "a job of the list", want, page.Items[0])

	work.change(t, w, func(j *model.Job) { j.State = model.JobFailed }, service, ids[0])
	equal(t, "after one failed", ids, w.listWork(t, service, 5, model.JobStates...))
	if got := w.listWork(t, service, 5, model.JobFailed); !slices.Contains(got, ids[0]) {
		t.Errorf("%s failed and is not among %v", ids[0], got)
	}
	_, err := w.Store.ListWork(t.Context(), service, model.JobStates, lifecycle.PageOf{After: "nonsense"})
	wantError(t, "a token that no listing gave", err, lifecycle.ErrPageToken)
}

// testOneClaimsWork: all of them read it while it waits.
func testOneClaimsWork(t *testing.T, w world) {
	work.put(t, w, fullWork("a"))
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
	got := work.stored(t, w, service, "a")
	equal(t, "its worker", <-winner, got.WorkerID)
	equal(t, "its state and version", fmt.Sprint(model.JobRunning, 2), fmt.Sprint(got.State, got.Version))
}

// testWorkShared: each worker takes jobs until there are none, each time the oldest that it can get.
func testWorkShared(t *testing.T, w world) {
	const jobs = 40
	for i := range jobs {
		work.put(t, w, fullWork(fmt.Sprintf("job-%02d", i)))
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
		if j := work.stored(t, w, service, id); taken[id] != 1 || j.Attempt != 2 || j.Version != 2 {
			t.Errorf("%s was claimed %d times, and is of attempt %d, version %d; want once, 2, 2", id, taken[id], j.Attempt, j.Version)
		}
	}
	equal(t, "count", model.JobCount{Running: jobs}, w.countWork(t, service))
}
