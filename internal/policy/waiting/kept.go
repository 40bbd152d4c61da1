package waiting

import "github.com/remuda-ci/remuda/internal/lifecycle"

// Kept is what kept a job from a host until now, when a slot is assigned for it: of several causes the one that ended last. No reason: nothing
// is known to have kept it. Open are the slots that the pool had before, Pause has the last pause that is over, and Budget is the one that kept
// the job when the line was read last.
func Kept(f Facts) lifecycle.Reason {
	paused := f.Pause.Over(f.Job.QueuedAt)
	switch {
	case len(f.Open) >= f.Maximum:
		return f.full()
	case f.Budget != nil:
		return f.Budget.Reason()
	case paused != "" && !f.Pause.Until.Before(f.Job.NotBefore):
		return lifecycle.Reason{Code: lifecycle.ReasonPoolPaused, Text: paused}
	case f.Job.Passed > 0:
		return f.passedOver()
	}
	return lifecycle.Reason{}
}
