// Package waiting says why a job of a job pool has no host yet, and what happens next.
package waiting

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy/budget"
)

// Facts are what is known about a waiting job and its pool.
type Facts struct {
	Job lifecycle.Job
	// Place is the job's place among the waiting jobs of the pool, from 1; 0: it is behind all that were read.
	Place int
	// Listed is how many waiting jobs were read, and More that there are others behind them.
	Listed int
	More   bool
	// Before is how many of those before it have its scope, so that a host of it would do for them too.
	Before int
	// Maximum is how many slots the pool may have at once, and Open are those that it has.
	Maximum int
	Open    []slots.Slot
	// Request is the request of Slot; nil: there is none.
	Request *lifecycle.Request
	Pause   pause.Pause
	// Budget keeps the runs of the job's repository from more hosts; nil: none does.
	Budget *budget.Use
	// AwaySince is since when GitHub does not answer; zero: it does.
	AwaySince time.Time
}

// Answer is why the job has no host, and what happens next in a sentence.
type Answer struct {
	lifecycle.Reason
	Next string
	// Since is when that which keeps it began; zero: it is not known, or nothing does.
	Since time.Time
}

func answer(why lifecycle.Reason, next string) Answer { return Answer{Reason: why, Next: next} }

// since is the answer with when that which keeps the job or request began.
func (a Answer) since(at time.Time) Answer {
	a.Since = at
	return a
}

// Why answers for a job that waits. The order of the cases is that in which the causes are to be mended: no host comes of a launch
// that has capacity while the pool is paused.
func Why(f Facts, now time.Time) Answer {
	switch slot := f.Slot(); {
	case f.Pause.On():
		return answer(lifecycle.Because(lifecycle.ReasonPoolPaused, "%s", f.Pause), "It gets a host once the pool is resumed.").since(f.Pause.Since)
	case f.Budget != nil && !f.askedFor():
		return answer(f.Budget.Reason(), "It gets a host "+f.Budget.Until()+".").since(f.Budget.Since)
	case f.Job.PassedOver(now):
		return answer(f.passedOver(), fmt.Sprintf("It has its turn again at %s.", f.Job.NotBefore.UTC().Format("15:04:05Z")))
	case slot != nil:
		return f.assigned(*slot)
	case len(f.Open) >= f.Maximum:
		return answer(f.full(), "It gets a host when one of them is free"+f.behind()+".").since(f.fullSince())
	}
	return answer(lifecycle.Because(lifecycle.ReasonJobWaiting, "no host was asked for yet"), "The pool asks for one within seconds.")
}

// GitHubAway is why a job has no host while GitHub does not answer.
func GitHubAway() lifecycle.Reason {
	return lifecycle.Because(lifecycle.ReasonGitHubUnavailable, "GitHub does not answer, so no host can register for it")
}

// Line says which of the waiting jobs it is: "the 3rd of 7". Empty: its place is unknown.
func (f Facts) Line() string {
	more := ""
	if f.More {
		more = "more than "
	}
	switch {
	case f.Place == 0 && f.Listed == 0:
		return ""
	case f.Place == 0:
		return "behind " + plural.Of(f.Listed, "other", "others")
	case f.Place == 1 && f.Listed == 1 && !f.More:
		return "the only one"
	}
	return fmt.Sprintf("the %s of %s%d", ordinal(f.Place), more, f.Listed)
}

// Slot is the one whose host is likely to take the job: the one that was assigned for it, else that which is left by the jobs before
// it. GitHub decides, so this is a guess where several wait. nil: all hosts have a job, or are for others.
func (f Facts) Slot() *slots.Slot {
	free := slices.DeleteFunc(slices.Clone(f.Open), func(s slots.Slot) bool { return s.Started || !strings.EqualFold(s.Scope, f.Job.Scope) })
	if i := slices.IndexFunc(free, func(s slots.Slot) bool { return s.JobID == f.Job.ID }); i >= 0 {
		return &free[i]
	}
	if f.Place > 0 && f.Before < len(free) {
		return &free[f.Before]
	}
	return nil
}

// askedFor reports whether a host was asked for the job itself, which is on its way whatever the budget says.
func (f Facts) askedFor() bool {
	return slices.ContainsFunc(f.Open, func(s slots.Slot) bool { return s.JobID == f.Job.ID && !s.Started })
}

func (f Facts) started() (n int) {
	for _, s := range f.Open {
		if s.Started {
			n++
		}
	}
	return n
}

// fullSince is since when the pool has had all of its hosts: since the last of them was asked for.
func (f Facts) fullSince() (at time.Time) {
	for _, s := range f.Open {
		if s.AssignedAt.After(at) {
			at = s.AssignedAt
		}
	}
	return at
}

func (f Facts) behind() string {
	switch {
	case f.Place > 2:
		return fmt.Sprintf(", after the %d jobs before it", f.Place-1)
	case f.Place == 2:
		return ", after the job before it"
	}
	return ""
}

func (f Facts) full() lifecycle.Reason {
	return lifecycle.Because(lifecycle.ReasonPoolFull, "pool %s has %d of %s, its maximum, and %s", f.Job.Pool, len(f.Open), plural.Of(f.Maximum, "host", "hosts"), f.atWork())
}

// atWork says how many of the pool's hosts have a job.
func (f Facts) atWork() string {
	started := f.started()
	if len(f.Open) == 1 {
		return plural.Word(started, "it is at work", "it is not at work yet")
	}
	return fmt.Sprintf("%d of them %s at work", started, plural.Word(started, "is", "are"))
}

func (f Facts) passedOver() lifecycle.Reason {
	times := "once"
	if f.Job.Passed > 1 {
		times = fmt.Sprintf("%d times in a row", f.Job.Passed)
	}
	return lifecycle.Because(lifecycle.ReasonPassedOver, "a host was asked for it %s and got no job, so the jobs behind it come first", times)
}

// assigned answers for a job for which a host was asked.
func (f Facts) assigned(s slots.Slot) Answer {
	const given = "GitHub gives the host to a job with its labels, this one or another."
	q := f.Request
	switch {
	case !f.AwaySince.IsZero():
		return answer(GitHubAway(), "Its host registers when GitHub answers again.").since(f.AwaySince)
	case q != nil && q.QuotaReason != "" && q.Missing() > 0:
		return answer(lifecycle.Because(lifecycle.ReasonQuota, "%s", q.QuotaReason), "It gets a host when one of those is free.").since(q.QuotaSince)
	case q != nil && q.Shortage != "" && q.Missing() > 0:
		return answer(lifecycle.Because(lifecycle.ReasonShortage, "the last launch was short: %s", q.Shortage),
			fmt.Sprintf("The launch is tried again until %s, and then another host is asked for.", q.Deadline.UTC().Format("15:04:05Z"))).since(q.ShortSince)
	case s.Runner != "":
		return answer(lifecycle.Because(lifecycle.ReasonWaitingForFirstJob, "runner %s listens for it", s.Runner), given)
	case q != nil && len(q.Taken) > 0:
		return answer(lifecycle.Because(lifecycle.ReasonWaitingForRegistration, "host %s is on its way: it boots or registers", q.Taken[0].InstanceID), given)
	}
	return answer(lifecycle.Because(lifecycle.ReasonRequestOpen, "a host was asked for at %s", s.AssignedAt.UTC().Format("15:04:05Z")), "It is taken from the pool or launched.")
}

// ordinal is "1st", "2nd", "3rd", "4th".
func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprint(n, suffix)
}
