package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

var workBegan = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// workStore is a store in which some writes are not carried out, or their
// answer does not come.
type workStore struct {
	workqueue.Store
	mu sync.Mutex
	// lose says what becomes of the next write of a job: "" nothing special,
	// "before" and "after" that it fails before or after it is carried out.
	lose    string
	updates int
	// ids is what the index says that waits; nil: the truth.
	ids []string
}

func (s *workStore) UpdateWork(ctx context.Context, j model.Job) (model.Job, error) {
	s.mu.Lock()
	lose := s.lose
	s.lose = ""
	s.updates++
	s.mu.Unlock()
	away := &lifecycle.UnavailableError{What: "update job", Err: errors.New("no answer")}
	if lose == "before" {
		return j, away
	}
	j, err := s.Store.UpdateWork(ctx, j)
	if lose == "after" {
		return model.Job{}, away
	}
	return j, err
}

func (s *workStore) WaitingWork(ctx context.Context, service string, limit int) ([]string, error) {
	if s.ids != nil {
		return s.ids, nil
	}
	return s.Store.WaitingWork(ctx, service, limit)
}

// workWorld is a fleet with the services render, and archive, whose jobs wait
// once more.
type workWorld struct {
	*world
	work   *workStore
	queued []string // the services that got a nudge
}

func newWorkWorld(t *testing.T) *workWorld {
	t.Helper()
	w := &workWorld{}
	w.world = newWorld(t, func(o *fleet.Options) {
		w.work = &workStore{Store: o.Store.(workqueue.Store)}
		o.Workers = &workqueue.Options{
			Store: w.work, Services: map[string]model.JobPolicy{"render": {QueueTime: time.Hour}, "archive": {QueueTime: time.Hour, Requeue: true}},
			Queued: func(service string) { w.queued = append(w.queued, service) },
		}
	})
	return w
}

func (w *workWorld) submit(service string, ids ...string) {
	w.t.Helper()
	for i, id := range ids {
		if _, err := w.fleet.SubmitWork(w.t.Context(), service, id, []byte(id), workBegan.Add(time.Duration(i))); err != nil {
			w.t.Fatal(err)
		}
	}
}

// claim is the id of the job that a worker gets; "" for none.
func (w *workWorld) claim(service, worker string, now time.Time) string {
	w.t.Helper()
	j, found, err := w.fleet.ClaimWork(w.t.Context(), service, worker, "1.0", now)
	if err != nil {
		w.t.Fatal(err)
	}
	if found && !j.RunBy(worker) {
		w.t.Errorf("worker %s got a job that is %s with %s", worker, j.State, j.WorkerID)
	}
	if !found {
		return ""
	}
	return j.ID
}

// first is the first attempt of a worker at a job.
func first(worker string) model.JobAttempt { return model.JobAttempt{WorkerID: worker, Number: 1} }

func (w *workWorld) job(service, id string) model.Job {
	w.t.Helper()
	j, err := w.fleet.Work(w.t.Context(), service, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

func (w *workWorld) sweep(now time.Time) {
	w.t.Helper()
	for op := w.fleet.NewWorkSweep(); ; {
		p, err := op.Step(w.t.Context(), now)
		if err != nil {
			w.t.Fatal(err)
		}
		if p.Done {
			return
		}
	}
}

func TestSubmitWork(t *testing.T) {
	w := newWorkWorld(t)
	ctx := t.Context()
	first, err := w.fleet.SubmitWork(ctx, "render", "a", []byte("x"), workBegan)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.fleet.SubmitWork(ctx, "render", "a", []byte("x"), workBegan.Add(time.Hour))
	if diff := cmp.Diff(first, again); err != nil || diff != "" {
		t.Errorf("said again: error %v, (-first +again):\n%s", err, diff)
	}
	if _, err := w.fleet.SubmitWork(ctx, "render", "a", []byte("y"), workBegan); !errors.Is(err, workqueue.ErrPayloadDiffers) {
		t.Errorf("another job of its id: got error %v, want %v", err, workqueue.ErrPayloadDiffers)
	}
	if _, err := w.fleet.SubmitWork(ctx, "archive", "a", []byte("y"), workBegan); err != nil {
		t.Errorf("its id in another service: %v", err)
	}
	w.claim("render", "w", workBegan)
	if j, err := w.fleet.SubmitWork(ctx, "render", "a", []byte("x"), workBegan); err != nil || j.State != model.JobRunning {
		t.Errorf("said again once it runs: got %s and error %v", j.State, err)
	}
	if diff := cmp.Diff([]string{"render", "render", "archive"}, w.queued); diff != "" {
		t.Errorf("services told of (-want +got):\n%s", diff)
	}
}

// TestUnknownServices: none of the calls knows them.
func TestUnknownServices(t *testing.T) {
	w := newWorkWorld(t)
	for name, f := range map[string]*fleet.Fleet{"another": w.fleet, "no queues": newWorld(t).fleet} {
		ctx := t.Context()
		_, submit := f.SubmitWork(ctx, "other", "a", nil, workBegan)
		_, hear := f.HearWorker(ctx, "other", "w", "", workBegan)
		_, _, claim := f.ClaimWork(ctx, "other", "w", "", workBegan)
		_, log := f.AppendWorkLog(ctx, "other", "a", first("w"), 0, "", workBegan)
		_, finish := f.FinishWork(ctx, "other", "a", first("w"), true, "", workBegan)
		_, get := f.Work(ctx, "other", "a")
		_, list := f.Workers(ctx, "other", lifecycle.PageOf{})
		_, jobs := f.ListWork(ctx, "other", nil, lifecycle.PageOf{})
		for i, err := range []error{submit, hear, claim, log, finish, get, list, jobs} {
			if !errors.Is(err, lifecycle.ErrNotFound) || !strings.Contains(err.Error(), "service other is not configured") {
				t.Errorf("%s: call %d: got error %v", name, i, err)
			}
		}
	}
}

func TestClaimWork(t *testing.T) {
	w := newWorkWorld(t)
	if got := w.claim("render", "w", workBegan); got != "" {
		t.Errorf("of no jobs, got %q", got)
	}
	w.submit("render", "b", "a", "c")
	w.submit("archive", "x")
	for _, step := range []struct{ worker, want string }{
		{"w1", "b"}, {"w2", "a"}, {"w1", "b"}, {"w3", "c"}, {"w4", ""}, {"w2", "a"},
	} {
		if got := w.claim("render", step.worker, workBegan); got != step.want {
			t.Errorf("%s got %q, want %q", step.worker, got, step.want)
		}
	}
	if j := w.job("render", "b"); j.Attempt != 1 || !j.StartedAt.Equal(workBegan) {
		t.Errorf("asked for twice, it was begun %d times", j.Attempt)
	}
	if _, err := w.fleet.FinishWork(t.Context(), "render", "b", first("w1"), true, "", workBegan); err != nil {
		t.Fatal(err)
	}
	w.submit("render", "d")
	if got := w.claim("render", "w1", workBegan); got != "d" {
		t.Errorf("after its job, w1 got %q, want d", got)
	}
	count, err := workqueue.Backlog{Store: w.work, AtMost: 3}.Count(t.Context(), "render")
	if err != nil || *count.Queued != 0 || *count.Busy != 3 || count.More {
		t.Errorf("backlog: got %d queued, %d busy and error %v; want 0 and 3", *count.Queued, *count.Busy, err)
	}
}

// TestClaimIsFoundAgain: whatever becomes of a claim, its worker's next one gets
// that job, and no second one.
func TestClaimIsFoundAgain(t *testing.T) {
	for _, lose := range []string{"before", "after"} {
		t.Run(lose, func(t *testing.T) {
			w := newWorkWorld(t)
			w.submit("render", "a", "b")
			w.work.lose = lose
			if _, _, err := w.fleet.ClaimWork(t.Context(), "render", "w", "", workBegan); !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Fatalf("got error %v, want unavailable", err)
			}
			if got := w.claim("render", "w", workBegan); got != "a" {
				t.Errorf("got %q, want a", got)
			}
			if got := w.claim("render", "other", workBegan); got != "b" {
				t.Errorf("another got %q, want b", got)
			}
		})
	}
	t.Run("another was faster", func(t *testing.T) {
		w := newWorkWorld(t)
		w.submit("render", "a", "b")
		w.work.lose = "before"
		_, _, _ = w.fleet.ClaimWork(t.Context(), "render", "w", "", workBegan)
		if got := w.claim("render", "other", workBegan); got != "a" {
			t.Errorf("another got %q, want a", got)
		}
		if got := w.claim("render", "w", workBegan); got != "b" {
			t.Errorf("got %q, want b", got)
		}
	})
}

// TestIndexThatLags names jobs that do not wait any more.
func TestIndexThatLags(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "a", "b", "c")
	w.claim("render", "w1", workBegan)
	w.work.ids = []string{"gone", "a", "b", "c"}
	if got := w.claim("render", "w2", workBegan); got != "b" && got != "c" {
		t.Errorf("got %q, want b or c", got)
	}
	w.work.ids = []string{"gone", "a"}
	writes := w.work.updates
	if got := w.claim("render", "w3", workBegan); got != "" || w.work.updates != writes {
		t.Errorf("got %q and %d writes, want none", got, w.work.updates-writes)
	}
}

// TestManyClaimers: 64 workers with four calls each under way share 300 jobs,
// and whatever they do at once, none has two.
func TestManyClaimers(t *testing.T) {
	step := racepass.Every(t, 4)
	workers, calls, jobs := 64/step, 4, 300/step
	w := newWorkWorld(t)
	for i := range jobs {
		w.submit("render", fmt.Sprintf("job-%03d", i))
	}
	var mu sync.Mutex
	done := map[string]string{}
	var wg sync.WaitGroup
	for n := range workers {
		wg.Go(func() {
			worker := fmt.Sprintf("w%d", n)
			for {
				got := make([]string, calls)
				var asking sync.WaitGroup
				for i := range calls {
					asking.Go(func() {
						j, found, err := w.fleet.ClaimWork(t.Context(), "render", worker, "", workBegan)
						if err != nil {
							t.Error(err)
						}
						if found {
							got[i] = j.ID
						}
					})
				}
				asking.Wait()
				id := ""
				for _, one := range got {
					if one != "" && id != "" && one != id {
						t.Errorf("worker %s got %s and %s at once", worker, id, one)
					}
					id = max(id, one)
				}
				left, err := w.work.CountWork(t.Context(), "render", 1000)
				if id == "" && left.Waiting == 0 || err != nil {
					return
				}
				if id == "" {
					continue
				}
				mu.Lock()
				if other, ok := done[id]; ok {
					t.Errorf("%s was got by %s and %s", id, other, worker)
				}
				done[id] = worker
				mu.Unlock()
				if _, err := w.fleet.FinishWork(t.Context(), "render", id, first(worker), true, "", workBegan); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(done) != jobs {
		t.Errorf("%d jobs were done, want %d", len(done), jobs)
	}
}

func TestWorkLog(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "a")
	w.claim("render", "w", workBegan)
	say := func(worker string, offset int64, lines string) (model.Job, error) {
		return w.fleet.AppendWorkLog(t.Context(), "render", "a", first(worker), offset, lines, workBegan.Add(time.Minute))
	}
	for range 2 { // the answer was lost
		if j, err := say("w", 0, "line 1\n"); err != nil || j.LogBytes != 7 {
			t.Errorf("got %d bytes and error %v, want 7", j.LogBytes, err)
		}
	}
	var bad *fleet.InvalidError
	if _, err := say("w", 9, "x"); !errors.As(err, &bad) || bad.Error() != "offset: is 9, and the log has 7 bytes: send what is between first" {
		t.Errorf("behind the end: got error %v", err)
	}
	if _, err := say("other", 7, "x"); !errors.Is(err, model.ErrStaleAttempt) {
		t.Errorf("by another: got error %v", err)
	}
	if j := w.job("render", "a"); j.LogTail != "line 1\n" || !j.ActivityAt.Equal(workBegan.Add(time.Minute)) {
		t.Errorf("got log %q, heard of at %s", j.LogTail, j.ActivityAt)
	}
}

// TestWorkLogOfManyCalls: none of the lines is lost, though each offset is sent
// by several.
func TestWorkLogOfManyCalls(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "a")
	w.claim("render", "w", workBegan)
	var log bytes.Buffer
	for i := range 20 {
		line := fmt.Sprintf("line %d\n", i)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := w.fleet.AppendWorkLog(t.Context(), "render", "a", first("w"), int64(log.Len()), line, workBegan); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		log.WriteString(line)
	}
	if diff := cmp.Diff(log.String(), w.job("render", "a").LogTail); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestFinishWork(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "a")
	w.claim("render", "w", workBegan)
	finish := func(worker string, succeeded bool) error {
		_, err := w.fleet.FinishWork(t.Context(), "render", "a", first(worker), succeeded, "why", workBegan)
		return err
	}
	if err := finish("other", true); !errors.Is(err, model.ErrStaleAttempt) {
		t.Errorf("by another: got error %v", err)
	}
	w.work.lose = "after"
	if err := finish("w", true); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("without an answer: got error %v", err)
	}
	writes := w.work.updates
	if err := finish("w", true); err != nil || w.work.updates != writes {
		t.Errorf("said again: got error %v and %d writes", err, w.work.updates-writes)
	}
	if err := finish("w", false); !errors.Is(err, model.ErrStaleAttempt) {
		t.Errorf("otherwise: got error %v", err)
	}
	page, err := w.fleet.Workers(t.Context(), "render", lifecycle.PageOf{})
	if err != nil || len(page.Items) != 1 || page.Items[0].JobID != "" {
		t.Errorf("workers: got %+v and error %v, want the one without a job", page.Items, err)
	}
}

// TestSilentWorkers: once failed or queued again, a job is not its worker's.
func TestSilentWorkers(t *testing.T) {
	w := newWorkWorld(t)
	for _, service := range []string{"render", "archive"} {
		w.submit(service, "a", "b")
		w.claim(service, "w1", workBegan)
		w.claim(service, "w2", workBegan)
		if _, err := w.fleet.AppendWorkLog(t.Context(), service, "b", first("w2"), 0, "", workBegan.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	w.queued = nil
	w.sweep(workBegan.Add(5*time.Minute - 1))
	w.sweep(workBegan.Add(5 * time.Minute))
	states := func() (got []string) {
		for _, service := range []string{"render", "archive"} {
			for _, id := range []string{"a", "b"} {
				j := w.job(service, id)
				got = append(got, fmt.Sprintf("%s/%s %s %d", service, id, j.State, j.Attempt))
			}
		}
		return got
	}
	want := []string{"render/a failed 1", "render/b running 1", "archive/a waiting 1", "archive/b running 1"}
	if diff := cmp.Diff(want, states()); diff != "" {
		t.Errorf("after five minutes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"archive"}, w.queued); diff != "" {
		t.Errorf("services told of (-want +got):\n%s", diff)
	}
	for _, service := range []string{"render", "archive"} {
		_, log := w.fleet.AppendWorkLog(t.Context(), service, "a", first("w1"), 0, "x", workBegan)
		_, finish := w.fleet.FinishWork(t.Context(), service, "a", first("w1"), true, "", workBegan)
		if !errors.Is(log, model.ErrStaleAttempt) || !errors.Is(finish, model.ErrStaleAttempt) {
			t.Errorf("%s: got errors %v and %v from a worker that was silent", service, log, finish)
		}
	}
	if got := w.claim("archive", "w3", workBegan.Add(6*time.Minute)); got != "a" {
		t.Errorf("w3 got %q, want a", got)
	}
	w.sweep(workBegan.Add(6 * time.Minute))
	w.sweep(workBegan.Add(11 * time.Minute))
	want = []string{"render/a failed 1", "render/b failed 1", "archive/a failed 2", "archive/b waiting 1"}
	if diff := cmp.Diff(want, states()); diff != "" {
		t.Errorf("after eleven minutes (-want +got):\n%s", diff)
	}
	due, err := w.work.DueWork(t.Context(), workBegan.Add(time.Hour), lifecycle.PageOf{})
	if err != nil || len(due.Items) != 0 {
		t.Errorf("still due: %v, error %v", due.Items, err)
	}
}

// TestManySilentWorkers are more than a page of the sweep.
func TestManySilentWorkers(t *testing.T) {
	w := newWorkWorld(t)
	for i := range 230 {
		w.submit("render", fmt.Sprint(i))
		w.claim("render", fmt.Sprintf("w%d", i), workBegan)
	}
	w.sweep(workBegan.Add(time.Hour))
	count, err := w.work.CountWork(t.Context(), "render", 1000)
	if err != nil || count.Running != 0 {
		t.Errorf("got %d that run and error %v, want none", count.Running, err)
	}
}

func TestHearWorker(t *testing.T) {
	w := newWorkWorld(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := w.fleet.HearWorker(t.Context(), "render", "w", "1.1", workBegan); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.submit("render", "a")
	w.claim("render", "w", workBegan.Add(time.Minute))
	got, err := w.fleet.HearWorker(t.Context(), "render", "w", "", workBegan.Add(2*time.Minute))
	want := model.Worker{
		Service: "render", ID: "w", WorkerVersion: "1.0", HeartbeatAt: workBegan.Add(2 * time.Minute), JobID: "a",
		Version: got.Version, ExpiresAt: workBegan.Add(2*time.Minute + 24*time.Hour),
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, worker (-want +got):\n%s", err, diff)
	}
	// Who asks for jobs every second is not written down every second.
	for second := range 15 {
		w.claim("archive", "w", workBegan.Add(time.Duration(second)*time.Second))
	}
	if idle, err := w.work.Worker(t.Context(), "archive", "w"); err != nil || idle.Version != 1 {
		t.Errorf("asked 15 times, it was written %d times, error %v", idle.Version, err)
	}
	w.claim("archive", "w", workBegan.Add(15*time.Second))
	if idle, err := w.work.Worker(t.Context(), "archive", "w"); err != nil || idle.Version != 2 {
		t.Errorf("asked after 15 s, it was written %d times, error %v", idle.Version, err)
	}
}
