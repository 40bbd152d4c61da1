package explain

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// RunningJob is a job that a host of a job pool runs.
type RunningJob struct {
	lifecycle.Job
	// URL is where people see it; empty: nowhere.
	URL string
}

// JobsOn finds the jobs that hosts of job pools run, by host key. A host is left out until a webhook has said which job it runs. It takes
// one read for each job pool that is among the hosts, and one for the jobs.
func (ex *Explainer) JobsOn(ctx context.Context, records []lifecycle.Record) (map[string]RunningJob, error) {
	if ex.JobStore == nil {
		return nil, nil
	}
	hostOf := map[int64]string{} // by the id of the job
	for pool, keys := range byJobPool(records) {
		table, err := ex.JobStore.SlotTable(ctx, pool)
		if err != nil {
			return nil, fmt.Errorf("read the slots of pool %s: %w", pool, err)
		}
		for _, slot := range table.Open {
			if key := keys[slot.RunID(pool)]; key != "" && slot.Runs != 0 {
				hostOf[slot.Runs] = key
			}
		}
	}
	if len(hostOf) == 0 {
		return nil, nil
	}
	ids := make([]int64, 0, len(hostOf))
	for id := range hostOf {
		ids = append(ids, id)
	}
	jobs, err := ex.JobStore.JobsOf(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the jobs of %d hosts: %w", len(ids), err)
	}
	on := make(map[string]RunningJob, len(jobs))
	for _, j := range jobs {
		running := RunningJob{Job: j}
		if ex.JobURL != nil {
			running.URL = ex.JobURL(j.Repository, j.RunID, j.ID)
		}
		on[hostOf[j.ID]] = running
	}
	return on, nil
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
