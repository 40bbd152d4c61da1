package fleet_test

import (
	"context"
	"errors"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

var errDamaged = errors.New("read: damaged document: no JSON from byte 1 on")

// damagedWork has jobs that cannot be read.
type damagedWork struct {
	workqueue.Store
	ids map[string]bool
}

func (s damagedWork) Work(ctx context.Context, service, id string) (model.Job, error) {
	if s.ids[id] {
		return model.Job{}, errDamaged
	}
	return s.Store.Work(ctx, service, id)
}

// A job that cannot be read is given to no worker, and keeps no other.
func TestADamagedJobKeepsNoOther(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "a", "b", "c", "d")
	damaged := map[string]bool{"a": true}
	w.work.Store = damagedWork{w.work.Store, damaged}
	if got := w.claim("render", "w1", workBegan); got == "" || got == "a" {
		t.Errorf("behind a damaged job, w1 got %q", got)
	}
	had := w.claim("render", "w2", workBegan)
	damaged[had] = true
	third := w.claim("render", "w2", workBegan)
	if third == "" || third == had {
		t.Errorf("w2, whose job %s is damaged by now, got %q", had, third)
	}
	if _, found, err := w.fleet.ClaimWork(t.Context(), "render", "w3", "", workBegan); found || !errors.Is(err, errDamaged) {
		t.Errorf("of a damaged job alone, w3 got %t and error %v", found, err)
	}
}

// contended is a store in which another writer is always faster with a job.
type contended struct {
	workqueue.Store
	tries int
}

func (s *contended) UpdateWork(context.Context, model.Job) (model.Job, error) {
	s.tries++
	return model.Job{}, lifecycle.ErrConflict
}

// A claim of a job that is written all the time ends, and takes no second one.
func TestAClaimEnds(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "a", "b")
	s := &contended{Store: w.work.Store}
	w.work.Store = s
	_, found, err := w.fleet.ClaimWork(t.Context(), "render", "w", "", workBegan)
	if found || !errors.Is(err, lifecycle.ErrUnavailable) || s.tries != 11 {
		t.Errorf("got %t and error %v after %d tries, want unavailable after 11", found, err, s.tries)
	}
}

// interleaved is a store in which another call comes between two of one caller. Each func runs once, at the place that it is named
// after.
type interleaved struct {
	workqueue.Store
	beforeWaiting, afterUpdateWorker, afterUpdateWork func()
}

func once(f *func()) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
}

func (s *interleaved) WaitingWork(ctx context.Context, service string, limit int) ([]string, error) {
	once(&s.beforeWaiting)
	return s.Store.WaitingWork(ctx, service, limit)
}

func (s *interleaved) UpdateWorker(ctx context.Context, w model.Worker) (model.Worker, error) {
	w, err := s.Store.UpdateWorker(ctx, w)
	once(&s.afterUpdateWorker)
	return w, err
}

func (s *interleaved) UpdateWork(ctx context.Context, j model.Job) (model.Job, error) {
	j, err := s.Store.UpdateWork(ctx, j)
	once(&s.afterUpdateWork)
	return j, err
}

// named is the job that the row of a worker names.
func (w *workWorld) named(service, worker string) string {
	w.t.Helper()
	row, err := w.work.Worker(w.t.Context(), service, worker)
	if err != nil {
		w.t.Fatal(err)
	}
	return row.JobID
}

// The row of a worker may name a job that another worker got. If that job is queued again, two calls of the worker may
// meet: one takes it, and the other has just seen that it is not to be had. The second must not name another job in the row.
func TestTwoClaimsOfAWorkerWhoseJobIsQueuedAgain(t *testing.T) {
	w := newWorkWorld(t)
	s := &interleaved{Store: w.work.Store}
	w.work.Store = s
	w.submit("archive", "again")
	s.afterUpdateWorker = func() { w.claim("archive", "faster", workBegan) }
	if got := w.claim("archive", "w", workBegan); got != "" || w.named("archive", "w") != "again" {
		t.Fatalf("after another was faster, w got %q, and its row names %q", got, w.named("archive", "w"))
	}
	w.submit("archive", "next")
	now, first := workBegan.Add(model.JobSilence), ""
	if _, err := w.fleet.HearWorker(t.Context(), "archive", "w", "1.0", now); err != nil {
		t.Fatal(err)
	}
	s.beforeWaiting = func() {
		w.sweep(now)
		first = w.claim("archive", "w", now)
	}
	second := w.claim("archive", "w", now)
	if first != "again" || second != "again" || w.named("archive", "w") != "again" {
		t.Errorf("the calls of w got %q and %q, and its row names %q: want the job that was queued again", first, second, w.named("archive", "w"))
	}
	if j := w.job("archive", "next"); j.State != model.JobWaiting {
		t.Errorf("the other job is %s with %q", j.State, j.WorkerID)
	}
}

// A worker that was silent may come back just as the sweep queues its job again, and take it once more. The sweep must not
// remove the job from its row then.
func TestAJobIsTakenAgainAsItIsQueuedAgain(t *testing.T) {
	w := newWorkWorld(t)
	s := &interleaved{Store: w.work.Store}
	w.work.Store = s
	w.submit("archive", "again")
	w.claim("archive", "w", workBegan)
	now, got := workBegan.Add(model.JobSilence), ""
	s.afterUpdateWork = func() { got = w.claim("archive", "w", now) }
	w.sweep(now)
	if got != "again" || w.named("archive", "w") != "again" {
		t.Errorf("w got %q, and its row names %q: want its job in both", got, w.named("archive", "w"))
	}
}
