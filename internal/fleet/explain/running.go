package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/recent"
)

// RunningJob is a job that a host runs.
type RunningJob struct {
	lifecycle.Job
	// URL is where people see it; empty: nowhere.
	URL string
}

// JobsOn finds the jobs that hosts run, by host key. A host is left out until a webhook has said which job it runs. The reads that it takes
// do not grow with the hosts: one for each job pool that is among them and one for its jobs, and for the hosts of runs see jobsOfRuns.
func (ex *Explainer) JobsOn(ctx context.Context, records []lifecycle.Record, now time.Time) (map[string]RunningJob, error) {
	if ex.JobStore == nil {
		return nil, nil
	}
	on := map[string]RunningJob{}
	if err := ex.jobsOfSlots(ctx, records, on); err != nil {
		return nil, err
	}
	return on, ex.jobsOfRuns(ctx, records, on, now)
}

// jobsOfSlots adds the jobs of the hosts of job pools. The slot of a host names its job.
func (ex *Explainer) jobsOfSlots(ctx context.Context, records []lifecycle.Record, on map[string]RunningJob) error {
	hostOf := map[int64]string{} // by the id of the job
	for pool, keys := range byJobPool(records) {
		table, err := ex.JobStore.SlotTable(ctx, pool)
		if err != nil {
			return fmt.Errorf("read the slots of pool %s: %w", pool, err)
		}
		for _, slot := range table.Open {
			if key := keys[slot.RunID(pool)]; key != "" && slot.Runs != 0 {
				hostOf[slot.Runs] = key
			}
		}
	}
	if len(hostOf) == 0 {
		return nil
	}
	ids := make([]int64, 0, len(hostOf))
	for id := range hostOf {
		ids = append(ids, id)
	}
	jobs, err := ex.JobStore.JobsOf(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the jobs of %s: %w", plural.Of(len(ids), "host", "hosts"), err)
	}
	for _, j := range jobs {
		on[hostOf[j.ID]] = ex.runningJob(j)
	}
	return nil
}

// jobOn is the job that a host runs; nil: none is known.
func (ex *Explainer) jobOn(ctx context.Context, r lifecycle.Record, now time.Time) (*RunningJob, error) {
	on, err := ex.JobsOn(ctx, []lifecycle.Record{r}, now)
	if j, ok := on[r.HostKey]; ok {
		return &j, err
	}
	return nil, err
}

// at says behind a sentence where people see the job.
func (j RunningJob) at() string {
	if j.URL == "" {
		return ""
	}
	return ": " + j.URL
}

// byJobPool has the keys of hosts that serve slots, by their pool and the run id of the slot.
func byJobPool(records []lifecycle.Record) map[string]map[string]string {
	pools := map[string]map[string]string{}
	for _, r := range records {
		if r.JobsOf == "" || r.RequestID == "" {
			continue
		}
		if pools[r.Pool] == nil {
			pools[r.Pool] = map[string]string{}
		}
		pools[r.Pool][r.RequestID] = r.HostKey
	}
	return pools
}

// Where the hosts are of more than fewRuns runs, all open jobs are read once instead of those of each run. At most mostOpen are, and what was
// read is used for openYoung by all callers.
const (
	fewRuns   = 5
	mostOpen  = 10_000
	openPage  = 1000
	openYoung = 2 * time.Second
	// openWithin bounds that read. A job that is not over is due for a look within dueWithin.
	openWithin = 30 * time.Second
	dueWithin  = 2 * time.Hour
)

// runKey names a run.
type runKey struct{ repository, runID string }

// jobsOfRuns adds the jobs of the hosts of runs. The job names its runner, which is the host's alone.
func (ex *Explainer) jobsOfRuns(ctx context.Context, records []lifecycle.Record, on map[string]RunningJob, now time.Time) error {
	hostOf, runs := map[string]string{}, map[runKey]bool{}
	for _, r := range records {
		if r.JobsOf == "" && r.RunID != "" && r.RunnerName != "" && r.State == lifecycle.StateRunning {
			hostOf[r.RunnerName], runs[runKey{r.Repository, r.RunID}] = r.HostKey, true
		}
	}
	if len(runs) > fewRuns {
		open, err := ex.openJobs(ctx, now)
		for runner, key := range hostOf {
			if j, ok := open[runner]; ok {
				on[key] = ex.runningJob(j)
			}
		}
		return err
	}
	for run := range runs {
		jobs, err := ex.JobStore.OpenJobsOfRun(ctx, run.repository, run.runID)
		if err != nil {
			return fmt.Errorf("list jobs of run %s: %w", run.runID, err)
		}
		for _, j := range jobs {
			if key := hostOf[j.RunnerName]; key != "" && j.State == lifecycle.JobRunning {
				on[key] = ex.runningJob(j)
			}
		}
	}
	return nil
}

// openJobs are the jobs that run, by the name of their runner, as they were at most openYoung ago.
func (ex *Explainer) openJobs(ctx context.Context, now time.Time) (map[string]lifecycle.Job, error) {
	q := recent.Question{Now: now, Young: openYoung, Within: openWithin}
	return ex.open.Get(ctx, q, func(ctx context.Context) (map[string]lifecycle.Job, error) {
		list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error) {
			return ex.JobStore.DueJobs(ctx, now.Add(dueWithin), page)
		}
		jobs, read := map[string]lifecycle.Job{}, 0
		for j, err := range listing.All(lifecycle.PageOf{Limit: openPage}, list) {
			if err != nil {
				return nil, fmt.Errorf("list open jobs: %w", err)
			}
			if j.State == lifecycle.JobRunning {
				jobs[j.RunnerName] = j
			}
			if read++; read == mostOpen {
				break
			}
		}
		return jobs, nil
	})
}

// runningJob is a job with its URL.
func (ex *Explainer) runningJob(j lifecycle.Job) RunningJob {
	running := RunningJob{Job: j}
	if ex.JobURL != nil {
		running.URL = ex.JobURL(j.Repository, j.RunID, j.ID)
	}
	return running
}
