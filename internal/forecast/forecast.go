package forecast

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/replay"
)

// Question is what is asked of a history.
type Question struct {
	History history.History
	Policy  replay.Policy
	// Present is the policy that it is held against; nil: none is.
	Present *replay.Policy
	Times   replay.Times
	// Search is what is searched for beside them.
	Search Search
	// Progress is called with what is played next; nil: nothing is.
	Progress func(what string)
}

// Answer plays the policies.
func Answer(ctx context.Context, q Question) (*Report, error) {
	if len(q.History.Jobs) == 0 {
		return nil, fmt.Errorf("the history has no job that ran")
	}
	r := newReport(q.History, q.Times)
	if err := q.play(ctx, r, ThisPolicy, q.Policy); err != nil {
		return nil, err
	}
	if q.Present != nil {
		if err := q.play(ctx, r, PresentOne, *q.Present); err != nil {
			return nil, err
		}
	}
	if q.Search.Wait > 0 {
		found, err := q.cheapest(ctx)
		if err != nil {
			return nil, err
		}
		r.add(CheapestOne, q.History, found.outcome)
		r.Found = found.text
	}
	fresh, err := replay.Fresh(q.History.Jobs, q.Policy, q.Times)
	if err != nil {
		return nil, err
	}
	r.add(FreshMachine, q.History, fresh)
	return r, nil
}

func (q Question) play(ctx context.Context, r *Report, name string, p replay.Policy) error {
	q.say(name)
	o, err := replay.Play(ctx, q.History.Jobs, p, q.Times)
	if err != nil {
		return err
	}
	r.add(name, q.History, o)
	return nil
}

// say says what is played next.
func (q Question) say(name string) {
	if q.Progress != nil {
		q.Progress(fmt.Sprintf("playing %d jobs: %s", len(q.History.Jobs), name))
	}
}
