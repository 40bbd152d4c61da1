package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// jobPoolLives: every ninth life has a job pool, whose jobs are announced by webhooks, unless it has hosts that rest.
const jobPoolLives = 9

func (l *life) pooling() bool {
	return l.Config.Seed%jobPoolLives == 2 && l.Config.Seed%restingLives != 16 && l.script == nil
}

// poolJobs draws the job pool of this life.
func (l *life) poolJobs() {
	if !l.pooling() {
		return
	}
	pick := func(d ...time.Duration) time.Duration { return d[l.Rand.IntN(len(d))] }
	p := l.Pools["default"]
	p.Name, p.Warm, p.Maximum = jobPoolName, nil, nil
	p.Policy.Standby, p.Policy.RestAfter, p.Policy.MaxUses = lifecycle.DefaultPolicy().Standby, 0, 0
	p.Policy.Reuse = []lifecycle.Reuse{lifecycle.ReuseSameRepository, lifecycle.ReuseSameOwner, lifecycle.ReuseNone}[l.Rand.IntN(3)]
	l.Pools[jobPoolName] = p
	l.JobPools = map[string]fleet.JobPool{jobPoolName: {
		JobPool: policy.JobPool{
			Minimum: l.Rand.IntN(2), Maximum: 2 + l.Rand.IntN(3), Repository: world.Repositories[0], Scope: world.Repositories[0],
			UnclaimedTimeout: pick(time.Minute, 3*time.Minute), RenewAfter: pick(0, 4*time.Minute),
		},
		Labels: []string{jobPoolLabel}, Repositories: []string{"acme/*"},
		Spec: lifecycle.Spec{ResourceClass: "small", Timeout: 10 * time.Minute, AllowOnDemand: true},
	}}
	l.GitHub.OnDelivery, l.GitHub.ListsDeliveries = l.deliver, l.Rand.IntN(2) == 0
	l.DrawJobFaults()
}

// beginPoolJobs has jobs of the pool queued at random times while there are storms, some of them together.
func (l *life) beginPoolJobs() {
	if !l.pooling() {
		return
	}
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		for range 1 + l.Rand.IntN(3) {
			l.askForPool()
		}
		l.After(l.Exp(2*time.Minute, 10*time.Minute), again)
	}
	l.After(l.Exp(20*time.Second, time.Minute), again)
}

// askForPool queues a job of the pool. It may be canceled, or taken by another's runner.
func (l *life) askForPool() {
	j := l.GitHub.Ask(world.Repositories[l.Rand.IntN(2)], jobPoolLabel, l.Exp(l.workload.jobLength, 5*time.Minute))
	if l.Chance(engine.FaultJobCanceled) {
		l.After(l.Exp(time.Minute, 10*time.Minute), func() { l.GitHub.Cancel(j) })
	}
	if l.Chance(engine.FaultJobStolen) {
		l.After(l.Exp(time.Minute, 10*time.Minute), func() { l.GitHub.Steal(j) })
	}
}

// deliver makes a delivery to some replica. It is missed if none takes it.
func (l *life) deliver(hook lifecycle.Webhook) {
	r := l.anyReplica()
	if r == nil {
		l.GitHub.Missed(hook)
		return
	}
	l.Spawn(&engine.Actor{Name: r.name + " webhook", Proc: r.proc, Dies: func() { l.GitHub.Missed(hook) }, Step: func() (time.Time, bool) {
		err := r.fleet.TakeWebhook(engine.Background, hook, r.clock())
		switch {
		case errors.Is(err, lifecycle.ErrWebhookIgnored), errors.Is(err, lifecycle.ErrExists):
		case err != nil:
			l.rules.CheckError("webhook", err)
			l.GitHub.Missed(hook)
		}
		return time.Time{}, true
	}})
}

// givenUpAfter is how long after the end of the faults people cancel the jobs that wait and will get no host.
const givenUpAfter = 30 * time.Minute

// endPoolJobs ends what would go on: the pool keeps no host ahead of need, and people give up the jobs that will get no host.
func (l *life) endPoolJobs() {
	if !l.pooling() {
		return
	}
	p := l.JobPools[jobPoolName]
	p.Minimum = 0
	l.JobPools[jobPoolName] = p
	l.After(givenUpAfter, func() {
		for _, j := range l.GitHub.Jobs {
			if l.rules.Excused(j) {
				l.GitHub.Cancel(j)
			}
		}
	})
}

// poolJobsLeft says what is left of the job pool at the end.
func (l *life) poolJobsLeft() (left []string) {
	if !l.pooling() {
		return nil
	}
	far := l.Now.Add(100 * 365 * 24 * time.Hour)
	for _, w := range engine.Must1(l.Truth.DueWebhooks(engine.Background, far, lifecycle.PageOf{})).Items {
		left = append(left, "webhook "+w.DeliveryID)
	}
	for _, j := range engine.Must1(l.Truth.DueJobs(engine.Background, far, lifecycle.PageOf{})).Items {
		left = append(left, fmt.Sprintf("row of job %d is %s: %s", j.ID, j.State, j.Reason))
	}
	if t := engine.Must1(l.Truth.SlotTable(engine.Background, jobPoolName)); len(t.Open) > 0 {
		left = append(left, "slots "+world.SlotsLine(t))
	}
	for _, j := range l.GitHub.Jobs {
		if j.Status != lifecycle.StatusCompleted {
			left = append(left, fmt.Sprintf("job %d at GitHub is %s", j.ID, j.Status))
		}
	}
	return left
}
