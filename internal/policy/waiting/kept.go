package waiting

import (
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
)

// Kept is what kept a job from a host until now, when a slot is assigned for it: of several causes the one that ended last. No reason: nothing
// is known to have kept it. Open are the slots that the pool had before; one of its own did not keep it. Pause has the last pause that is over.
// Noted is what kept the job when it was looked at last: a budget, or that GitHub did not answer about it.
func Kept(f Facts, noted lifecycle.Reason) lifecycle.Reason {
	paused := f.Pause.Over(f.Job.QueuedAt)
	f.Open = slices.DeleteFunc(slices.Clone(f.Open), func(s slots.Slot) bool { return s.JobID == f.Job.ID && !s.Started })
	switch {
	case len(f.Open) >= f.Maximum:
		return f.full()
	case noted.Text != "":
		return noted
	case paused != "" && !f.Pause.Until.Before(f.Job.NotBefore):
		return lifecycle.Reason{Code: lifecycle.ReasonPoolPaused, Text: paused}
	case f.Job.Passed > 0:
		return f.passedOver()
	}
	return lifecycle.Reason{}
}
