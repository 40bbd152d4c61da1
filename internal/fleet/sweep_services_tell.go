package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// serviceTold is what came of telling ECS how many runners a service is to have.
type serviceTold struct {
	// err is why ECS was not told.
	err error
	// counted is a backlog that says that the runners are needed, or may be.
	counted *counted
	// enough says that there are as many runners by now, or more.
	enough *model.Tasks
	// overtaken: somebody else has decided on the service since.
	overtaken bool
}

// carry tells ECS what was decided.
func (s *ServiceSweep) carry(ctx context.Context, l *serviceLook, now time.Time) (op.Progress, error) {
	s.ask(s.telling, l, s.heard, func() { l.told = s.tell(ctx, l, now) })
	return s.await(ctx, now)
}

// tell is the one way to SetDesired. What was decided may be seconds old, so that
// it makes sure of it first.
func (s *ServiceSweep) tell(ctx context.Context, l *serviceLook, now time.Time) serviceTold {
	sure := s.sureOfMore
	if l.decision.Action == policy.ServiceScaleIn {
		sure = s.sureOfNone
	}
	if otherwise := sure(ctx, l, now); otherwise != nil {
		return *otherwise
	}
	ctx, cancel := context.WithTimeout(ctx, ecsLimit)
	defer cancel()
	return serviceTold{err: s.f.services.Scaler.SetDesired(ctx, l.row.Name, l.decision.Desired)}
}

// sureOfMore asks ECS once more, so that what begins runners never ends some that
// somebody else has begun since; nil: ECS is to be told.
func (s *ServiceSweep) sureOfMore(ctx context.Context, l *serviceLook, _ time.Time) *serviceTold {
	ctx, cancel := context.WithTimeout(ctx, ecsLimit)
	defer cancel()
	look := s.f.services.Scaler.Describe(ctx, []string{l.row.Name})[l.row.Name]
	switch {
	case look.Err != nil:
		return &serviceTold{err: look.Err}
	case look.Desired >= l.decision.Desired:
		return &serviceTold{enough: &look.Tasks}
	}
	return nil
}

// sureOfNone counts once more before runners are taken away: a job may have come
// since, and ECS ends a runner that has one as well. nil: ECS is to be told.
func (s *ServiceSweep) sureOfNone(ctx context.Context, l *serviceLook, now time.Time) *serviceTold {
	if c := s.f.countBacklog(ctx, l.row.Name, s.limit); !nothing(c.Queued) || !nothing(c.Busy) {
		return &serviceTold{counted: &c}
	}
	row, err := s.f.services.Store.Service(ctx, l.row.Name)
	if err != nil {
		return &serviceTold{err: fmt.Errorf("read service %s: %w", l.row.Name, err)}
	}
	if row.Version != l.row.Version {
		return &serviceTold{overtaken: true}
	}
	if err := s.f.mayEnd(ctx, now); err != nil {
		return &serviceTold{err: err}
	}
	return nil
}

// heard notes what came of it.
func (s *ServiceSweep) heard(ctx context.Context, l *serviceLook, now time.Time) (op.Progress, error) {
	s.Next = s.await
	switch {
	case l.told.counted != nil:
		// Decided anew with it, under the version that this sweep wrote.
		l.backlog = *l.told.counted
		l.told = serviceTold{}
		s.Next = func(ctx context.Context, now time.Time) (op.Progress, error) { return s.decide(ctx, l, now) }
	case l.told.overtaken:
		s.overtaken = true
	case l.told.enough != nil:
		l.row.Tasks, l.row.Wanted = *l.told.enough, l.told.enough.Desired
		l.row.Reason = fmt.Sprintf("%s, and by now it was told to have %d", l.decision.Reason, l.row.Wanted)
		s.correct(ctx, l.row)
	case l.told.err != nil && ctx.Err() != nil:
		return op.Again, l.told.err
	case l.told.err != nil:
		s.notTold(ctx, l)
	default:
		s.Events.RecordEffect(scaleEvent(l.row, l.decision, now))
		if l.decision.Action == policy.ServiceScaleIn {
			// A job that came just then found runners, and asked for none.
			s.f.services.nudges.at(l.row.Name, now.Add(nudgeSettle), true)
		}
	}
	return op.Again, nil
}

// notTold notes that ECS was not told. The next look decides anew.
func (s *ServiceSweep) notTold(ctx context.Context, l *serviceLook) {
	s.fail(l.row.Name, l.told.err)
	s.f.log.Warn("service not scaled; the next look tries again", "service", l.row.Name, "to", l.decision.Desired, "error", l.told.err)
	l.row.Wanted, l.row.Reason = l.row.Desired, l.decision.Reason+", and ECS was not told: "+oneLine(l.told.err)
	s.correct(ctx, l.row)
}

// correct writes a row that says what was not carried out, unless somebody else
// has looked since.
func (s *ServiceSweep) correct(ctx context.Context, row model.Service) {
	if _, err := s.f.services.Store.UpdateService(ctx, row); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		s.f.log.Warn("service not written", "service", row.Name, "error", err)
	}
}

func nothing(n *int) bool { return n != nil && *n == 0 }
