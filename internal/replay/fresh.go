package replay

import (
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// Fresh is the outcome with a fresh machine for each job, and no pool: it is launched when the job is created, and ends with the job. It is
// computed, not played: each job waits for a boot and a registration, and its machine is paid for from its launch to the end of the job.
func Fresh(jobs []history.Job, p Policy, t Times) (*Outcome, error) {
	if len(jobs) == 0 {
		return nil, errors.New("replay: the history has no job")
	}
	begin := jobs[0].Created.UTC()
	a, poolOf := newAccount(begin, jobs, p.Prices), p.PoolOf()
	end := begin
	c := newCloud(p, func() time.Time { return begin })
	wait := t.Boot + t.Register
	for i, j := range jobs {
		pool := poolOf(j)
		order := orderOf(pool, p.Classes)
		of, err := c.typeFor(order)
		if err != nil {
			return nil, err
		}
		a.served(&serving{index: i, job: j}, CameCold, j.Created.Add(wait))
		a.add([]meter.Entry{{
			Host: meter.Host{Pool: pool.Name, InstanceType: of.Name, UsageClass: string(order.UsageClass)}, User: meter.User{Repository: lifecycle.Canonical(j.Repository)},
			Times: meter.Times{Boot: wait, Busy: j.Took()},
		}})
		if over := j.Created.Add(wait + j.Took()); over.After(end) {
			end = over
		}
	}
	o := a.outcome(end, c)
	o.Launched, o.Series = len(jobs), Series{}
	return o, nil
}

// orderOf is the order of a machine for a job of a pool.
func orderOf(p Pool, classes map[string]fleet.Class) lifecycle.LaunchOrder {
	s := fleet.WithMachine(p.Spec)
	class := classes[s.ResourceClass]
	return lifecycle.LaunchOrder{
		Count: 1, CPU: class.CPU, MemoryMiB: class.MemoryMiB, UsageClass: s.UsageClass, InstanceTypes: s.InstanceTypes, PoolTypes: p.InstanceTypes,
	}
}
