package policy

import (
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// ServicePolicy is how a service of runners in containers is scaled.
type ServicePolicy struct {
	// Maximum runners are asked for at once.
	Maximum int
	// BacklogPerRunner is how many jobs may wait for each runner before there is one more.
	BacklogPerRunner int
	// IdleChecks is how often in a row nothing may wait and be worked on before the service goes to zero.
	IdleChecks int
}

// ServiceFacts are what is known of a service.
type ServiceFacts struct {
	// Desired is how many runners it should have. Running of them run and Pending start.
	Desired, Running, Pending int
	// Queued jobs wait, Busy ones are worked on; nil: it is not known.
	Queued, Busy *int
	// More may wait than Queued.
	More bool
	// IdleChecks is how often in a row nothing waited and was worked on before.
	IdleChecks int
	// Between says that this look is one between two checks: it does not count as
	// one, or five nudges of an idle service would end it within a second.
	Between bool
}

// ServiceAction is what is done with a service.
type ServiceAction string

// The actions.
const (
	ServiceKeep     ServiceAction = "keep"
	ServiceScaleOut ServiceAction = "scale_out"
	ServiceScaleIn  ServiceAction = "scale_in"
)

// ServiceDecision is how many runners a service is to have, and why.
type ServiceDecision struct {
	Action  ServiceAction
	Desired int
	// IdleChecks is the count with this look.
	IdleChecks int
	// Code is why, and Reason says it in a sentence for people.
	Code   lifecycle.ReasonCode
	Reason string
}

// Scale decides on a service. It scales out as soon as something waits, and in only to zero, when nothing
// waited and nothing was worked on for IdleChecks in a row: ECS chooses which runners it ends. Unknown
// numbers change nothing, except that a first runner only needs to know that something waits.
func (p ServicePolicy) Scale(f ServiceFacts) ServiceDecision {
	f.Queued, f.Busy = knownCount(f.Queued), knownCount(f.Busy)
	switch {
	case aboveZero(f.Queued):
		return p.scaleOut(f)
	case aboveZero(f.Busy):
		return f.keep(0, jobsRunning(*f.Busy))
	case f.Queued == nil:
		return f.keep(f.IdleChecks, queuedUnknown)
	case f.Busy == nil:
		return f.keep(f.IdleChecks, busyUnknown)
	case f.Desired == 0:
		return f.keep(0, serviceEmpty)
	}
	return p.idle(f)
}

// scaleOut: something waits.
func (p ServicePolicy) scaleOut(f ServiceFacts) ServiceDecision {
	wanted := f.Desired
	switch {
	case f.Busy != nil:
		wanted = max(wanted, p.needed(*f.Queued))
	case wanted <= 0:
		wanted = 1
	}
	why := p.jobsWaiting(f, wanted)
	d := ServiceDecision{Action: ServiceKeep, Desired: wanted, Code: why.Code, Reason: why.Text}
	if wanted > f.Desired {
		d.Action = ServiceScaleOut
	}
	return d
}

// needed is how many runners a backlog needs: 1 to Maximum.
func (p ServicePolicy) needed(queued int) int {
	if p.BacklogPerRunner < 1 {
		return 1
	}
	n := queued / p.BacklogPerRunner
	if queued%p.BacklogPerRunner > 0 {
		n++
	}
	return max(1, min(n, p.Maximum))
}

// idle: nothing waits, nothing is worked on, and there are runners.
func (p ServicePolicy) idle(f ServiceFacts) ServiceDecision {
	if f.Between {
		return f.keep(f.IdleChecks, serviceIdle("%d of %s; this look is not one of them", f.IdleChecks, plural.Of(p.IdleChecks, "check", "checks")))
	}
	checks := min(max(f.IdleChecks, 0)+1, max(p.IdleChecks, 1))
	if checks < p.IdleChecks {
		return f.keep(checks, serviceIdle("%d of %d checks in a row", checks, p.IdleChecks))
	}
	why := serviceIdle("%s in a row", plural.Of(checks, "check", "checks"))
	return ServiceDecision{Action: ServiceScaleIn, IdleChecks: checks, Code: why.Code, Reason: why.Text}
}

func (f ServiceFacts) keep(checks int, why lifecycle.Reason) ServiceDecision {
	return ServiceDecision{Action: ServiceKeep, Desired: f.Desired, IdleChecks: checks, Code: why.Code, Reason: why.Text}
}

// knownCount is a count that can be one; nil: it is not known.
func knownCount(n *int) *int {
	if n != nil && *n < 0 {
		return nil
	}
	return n
}

func aboveZero(n *int) bool { return n != nil && *n > 0 }
