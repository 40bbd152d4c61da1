package githubsim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// apiJob is a job as GitHub's API has it.
type apiJob struct {
	ID        int64
	Name      string
	Status    string
	CreatedAt time.Time `json:"created_at"`
}

func (s *standin) jobsOf(run int64) map[string]apiJob {
	s.t.Helper()
	var got struct{ Jobs []apiJob }
	s.call(200, "GET", fmt.Sprintf("/repos/acme/app/actions/runs/%d/jobs", run), nil, &got)
	jobs := map[string]apiJob{}
	for _, j := range got.Jobs {
		jobs[j.Name] = j
	}
	return jobs
}

// listed are the ids of the runs of a status.
func (s *standin) listed(status string) (ids []int64) {
	s.t.Helper()
	var got struct {
		Runs []struct{ ID int64 } `json:"workflow_runs"`
	}
	s.call(200, "GET", "/repos/acme/app/actions/runs?status="+status, nil, &got)
	for _, r := range got.Runs {
		ids = append(ids, r.ID)
	}
	return ids
}

// A job of an environment waits for an approval, from when it is made. It is queued when it is approved, and keeps the time at
// which it was made. Its run is waiting, whatever its other jobs do.
func TestAJobWaitsForAnApproval(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	s.deliverTo(r, "hush", 0, 0)
	id := s.startRun("on: push\njobs:\n" +
		"  deploy: {runs-on: box, environment: production, steps: [{run: 'true'}]}\n" +
		"  test: {runs-on: box, steps: [{run: 'true'}]}\n")
	begun := s.clock.Now()
	jobs := s.jobsOf(id)
	if d := cmp.Diff(map[string]string{"deploy": "waiting", "test": "queued"}, map[string]string{"deploy": jobs["deploy"].Status, "test": jobs["test"].Status}); d != "" {
		t.Error(d)
	}
	if got := s.listed("waiting"); !slices.Equal(got, []int64{id}) || len(s.listed("queued")) != 0 {
		t.Errorf("waiting are %v", got)
	}
	s.online("a", "box")
	s.await(id, "the job beside it", func(v runView) bool { return v.Jobs[1].Status == "completed" })
	if v := s.run(id); v.Status != "waiting" || v.Jobs[0].Status != "waiting" {
		t.Errorf("the run is %s, and its job %s", v.Status, v.Jobs[0].Status)
	}
	const days = 29 * 24 * time.Hour
	s.clock.advance(days)
	s.call(202, "POST", fmt.Sprintf("/_standin/runs/%d/approve", id), nil, nil)
	if v := s.completed(id); *v.Conclusion != "success" {
		t.Errorf("%+v", v)
	}
	if j := s.jobsOf(id)["deploy"]; !j.CreatedAt.Equal(begun) {
		t.Errorf("created at %s, and its run began at %s", j.CreatedAt, begun)
	}
	heard := r.await(t, 10)
	if i, j := slices.Index(heard, "workflow_job waiting"), slices.Index(heard, "workflow_run completed"); i < 0 || j < i {
		t.Errorf("heard %v", heard)
	}
}

// Jobs of a concurrency group run one after the other, in one run and in several. Those that wait are pending.
func TestAJobWaitsForItsConcurrencyGroup(t *testing.T) {
	s := start(t)
	text := "on: push\njobs:\n  a: {runs-on: box, concurrency: one, steps: [{run: 'true'}]}\n  b: {runs-on: box, concurrency: one, steps: [{run: 'true'}]}\n"
	first, second := s.startRun(text), s.startRun(text)
	if d := cmp.Diff(map[string]string{"a": "queued", "b": "pending"}, s.run(first).conclusions()); d != "" {
		t.Error(d)
	}
	if j := s.jobsOf(first)["b"]; j.Status != "pending" || !j.CreatedAt.Equal(s.clock.Now()) {
		t.Errorf("what waits is %+v", j)
	}
	if got := s.listed("pending"); !slices.Equal(got, []int64{second}) {
		t.Errorf("pending are %v", got)
	}
	s.call(202, "POST", fmt.Sprintf("/_standin/runs/%d/cancel", first), nil, nil)
	s.Tick()
	if d := cmp.Diff(map[string]string{"a": "queued", "b": "pending"}, s.run(second).conclusions()); d != "" {
		t.Errorf("after the cancel: %s", d)
	}
	s.online("a", "box")
	if v := s.completed(second); *v.Conclusion != "success" {
		t.Errorf("%+v", v)
	}
}

// GitHub makes a job when its needs are met.
func TestAJobIsMadeWhenItsNeedsAreMet(t *testing.T) {
	s := start(t)
	id := s.startRun("on: push\njobs:\n  a: {runs-on: box, steps: [{run: 'true'}]}\n  b: {needs: a, runs-on: other, steps: [{run: 'true'}]}\n")
	if jobs := s.jobsOf(id); len(jobs) != 1 {
		t.Errorf("made are %v", jobs)
	}
	s.clock.advance(2 * time.Hour)
	s.online("a", "box")
	s.await(id, "its needs", func(v runView) bool { return v.Jobs[1].Status == "queued" })
	if j := s.jobsOf(id)["b"]; !j.CreatedAt.Equal(s.clock.Now()) {
		t.Errorf("made at %s, and its needs were met at %s", j.CreatedAt, s.clock.Now())
	}
}

func TestAJobIsNotQueuedForLongerThanADay(t *testing.T) {
	s := start(t)
	id := s.startRun("on: push\njobs:\n  a: {runs-on: box, steps: [{run: 'true'}]}\n")
	s.clock.advance(githubsim.QueueTime - time.Second)
	s.Tick()
	if v := s.run(id); v.Status != "queued" {
		t.Errorf("just before: %s", v.Status)
	}
	s.clock.advance(time.Second)
	s.Tick()
	if v := s.run(id); v.Status != "completed" || *v.Conclusion != "failure" || v.Jobs[0].Runner != nil {
		t.Errorf("%+v", v)
	}
}

// The same seed gives the same order, and no job is held up for longer than it says.
func TestJobsAreAssignedInAnyOrder(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var queue []*state.Job
	for id := range int64(20) {
		queue = append(queue, &state.Job{ID: id + 1, QueuedAt: now})
	}
	ids := func(jobs []*state.Job) (out []int64) {
		for _, j := range jobs {
			out = append(out, j.ID)
		}
		return out
	}
	if got := ids(state.Assignment{}.Due(queue, now)); !slices.IsSorted(got) || len(got) != 20 {
		t.Errorf("without a seed: %v", got)
	}
	a := state.Assignment{Seed: 7, Within: time.Minute}
	if got := ids(a.Due(queue, now.Add(30*time.Second))); len(got) == 0 || len(got) == 20 || !slices.Equal(got, ids(a.Due(queue, now.Add(30*time.Second)))) {
		t.Errorf("after half of the time: %v", got)
	}
	all := ids(a.Due(queue, now.Add(time.Minute)))
	if slices.IsSorted(all) || len(all) != 20 {
		t.Errorf("after all of the time: %v", all)
	}
	if other := ids(state.Assignment{Seed: 8, Within: time.Minute}.Due(queue, now.Add(time.Minute))); slices.Equal(all, other) {
		t.Errorf("two seeds give %v", other)
	}
}
