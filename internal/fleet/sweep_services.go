package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

const (
	// countAtOnce is how many backlogs are counted at the same time, so that a
	// database that hangs does not hold up the others.
	countAtOnce = 8
	// lookTries is how often a service is decided on anew when somebody else
	// looked at the same time, or a job came while it was being scaled in.
	lookTries = 3
	// longestServiceReason bounds what is kept of an error, in bytes.
	longestServiceReason = 600
)

// ServiceSweep looks at services of runners: what waits for them and what they
// run. It writes down what is decided, then tells ECS; when it dies between the
// two, the next one decides the same again.
type ServiceSweep struct {
	course
	f *Fleet
	// nudged: somebody asked for it, so that it is no idle check.
	nudged bool
	left   []string // to be decided on
	tries  int      // how often the first of them was

	looks    map[string]lifecycle.ServiceLook
	backlogs map[string]counted
	scaling  scaling
	// failed says why a service could not be looked at or scaled. It keeps none of
	// the others.
	failed map[string]error
}

// counted is a backlog, or as much of it as is known and why not more.
type counted struct {
	lifecycle.Backlog
	err error
}

// scaling is a decision that ECS has not been told.
type scaling struct {
	name     string
	from     int
	decision policy.ServiceDecision
	row      lifecycle.Service // as stored with it
}

// NewServiceSweep begins a look at every service that is scaled.
func (f *Fleet) NewServiceSweep() *ServiceSweep {
	s := f.newServiceLook(f.scaled()...)
	s.nudged, s.journal.sweep = false, "services"
	return s
}

// newServiceLook begins a look at some services because somebody asked for it.
func (f *Fleet) newServiceLook(names ...string) *ServiceSweep {
	s := &ServiceSweep{f: f, course: course{journal: journal{f: f}}, nudged: true, left: names, failed: map[string]error{}}
	s.next = s.describe
	return s
}

// Failed says why services could not be looked at or scaled; nil: all were.
func (s *ServiceSweep) Failed() error {
	var errs []error
	for _, err := range s.failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *ServiceSweep) describe(ctx context.Context, _ time.Time) (Progress, error) {
	if len(s.left) == 0 {
		return done, nil
	}
	s.looks = s.f.services.Scaler.Describe(ctx, s.left)
	s.next = s.count
	return again, nil
}

// count asks for every backlog.
func (s *ServiceSweep) count(ctx context.Context, _ time.Time) (Progress, error) {
	s.backlogs = map[string]counted{}
	var mu sync.Mutex
	var counting sync.WaitGroup
	turns := make(chan struct{}, countAtOnce)
	for _, name := range s.left {
		counting.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			c := s.f.countBacklog(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			s.backlogs[name] = c
		})
	}
	counting.Wait()
	s.next = s.decide
	return again, nil
}

func (f *Fleet) countBacklog(ctx context.Context, name string) counted {
	b, err := f.services.Services[name].Backlog.Count(ctx, name)
	return counted{b, err}
}

// decide decides on the next service, and writes it down.
func (s *ServiceSweep) decide(ctx context.Context, now time.Time) (Progress, error) {
	if len(s.left) == 0 {
		return done, nil
	}
	name := s.left[0]
	row, err := s.f.services.Store.Service(ctx, name)
	if err != nil {
		return again, fmt.Errorf("read service %s: %w", name, err)
	}
	d, next := s.decision(row, now)
	s.news(row, d, next, now)
	if s.journal.dry {
		s.pass()
		return again, nil
	}
	stored, err := s.f.services.Store.UpdateService(ctx, next)
	switch {
	case errors.Is(err, lifecycle.ErrLost):
		s.repeat() // somebody else looked: what was counted is still good
	case err != nil:
		return again, fmt.Errorf("write service %s: %w", name, err)
	case d.Action == policy.ServiceKeep:
		s.pass()
	default:
		s.scaling = scaling{name, next.Desired, d, stored}
		s.next = s.carry
	}
	return again, nil
}

// decision is what to do with the service of a row, and the row with it.
func (s *ServiceSweep) decision(row lifecycle.Service, now time.Time) (policy.ServiceDecision, lifecycle.Service) {
	look, backlog := s.looks[row.Name], s.backlogs[row.Name]
	row.CheckedAt = now
	if look.Err != nil {
		s.failed[row.Name] = look.Err
		d := policy.ServiceDecision{Action: policy.ServiceKeep, Desired: row.Wanted, IdleChecks: row.IdleChecks, Why: "it could not be looked at: " + oneLine(look.Err)}
		row.Reason = d.Why
		return d, row
	}
	between := s.nudged || now.Sub(row.CountedAt) < s.f.timing.Services/2
	d := s.f.services.Services[row.Name].Policy.Scale(policy.ServiceFacts{
		Desired: look.Desired, Running: look.Running, Pending: look.Pending,
		Queued: backlog.Queued, Busy: backlog.Busy, IdleChecks: row.IdleChecks, Between: between,
	})
	if backlog.err != nil {
		d.Why += ": " + oneLine(backlog.err)
		if d.Action == policy.ServiceKeep {
			s.failed[row.Name] = backlog.err
		}
	}
	if !between {
		row.CountedAt = now
	}
	row.ServiceTasks, row.Backlog = look.ServiceTasks, backlog.Backlog
	row.IdleChecks, row.Wanted, row.Reason = d.IdleChecks, d.Desired, d.Why
	return d, row
}

// oneLine is an error as part of a sentence.
func oneLine(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > longestServiceReason {
		text = strings.ToValidUTF8(text[:longestServiceReason], "") + "…"
	}
	return text
}

// news tells of a decision: to whoever collects them, and to the history when a
// sweep decides otherwise than the look before. What ECS is told is told by
// carry.
func (s *ServiceSweep) news(before lifecycle.Service, d policy.ServiceDecision, after lifecycle.Service, now time.Time) {
	e := lifecycle.Event{At: now, Action: lifecycle.ActionKeep, Reason: fmt.Sprintf("service %s: %s", before.Name, d.Why)}
	if d.Action != policy.ServiceKeep {
		e = scaleEvent(scaling{before.Name, after.Desired, d, after}, now)
	}
	if s.journal.decided != nil {
		*s.journal.decided = append(*s.journal.decided, Decided{Action: e.Action, Reason: e.Reason})
	}
	if d.Action == policy.ServiceKeep && !s.nudged && !s.journal.dry && before.Reason != after.Reason {
		s.journal.tell(e)
	}
}

func scaleEvent(c scaling, now time.Time) lifecycle.Event {
	return lifecycle.Event{
		At: now, Action: lifecycle.ActionScale,
		Reason: fmt.Sprintf("service %s goes from %d to %d: %s", c.name, c.from, c.decision.Desired, c.decision.Why),
	}
}

// carry tells ECS what was decided. Before it takes runners away it counts once
// more: a job may have come since, and ECS ends a runner that has one as well.
func (s *ServiceSweep) carry(ctx context.Context, now time.Time) (Progress, error) {
	c := s.scaling
	if c.decision.Action == policy.ServiceScaleIn {
		again := s.f.countBacklog(ctx, c.name)
		if !nothing(again.Queued) || !nothing(again.Busy) {
			s.backlogs[c.name] = again
			s.repeat()
			return Progress{}, nil
		}
	}
	if err := s.f.services.Scaler.SetDesired(ctx, c.name, c.decision.Desired); err != nil {
		if ctx.Err() != nil {
			return again, err
		}
		s.notTold(ctx, c, err)
		s.pass()
		return again, nil
	}
	s.journal.add(scaleEvent(c, now))
	if c.decision.Action == policy.ServiceScaleIn {
		// A job that came just then found runners, and asked for none.
		s.f.services.nudges.at(c.name, time.Now().Add(nudgeSettle), true)
	}
	s.pass()
	return again, nil
}

// notTold notes that ECS could not be told. The next look decides anew.
func (s *ServiceSweep) notTold(ctx context.Context, c scaling, why error) {
	s.failed[c.name] = why
	s.f.log.Warn("service not scaled; the next look tries again", "service", c.name, "to", c.decision.Desired, "error", why)
	c.row.Wanted, c.row.Reason = c.from, c.decision.Why+", and ECS could not be told: "+oneLine(why)
	if _, err := s.f.services.Store.UpdateService(ctx, c.row); err != nil && !errors.Is(err, lifecycle.ErrLost) {
		s.f.log.Warn("service not written", "service", c.name, "error", err)
	}
}

func nothing(n *int) bool { return n != nil && *n == 0 }

// pass goes on with the next service.
func (s *ServiceSweep) pass() {
	s.left, s.tries, s.next = s.left[1:], 0, s.decide
}

// repeat decides on the same service again, a few times at most.
func (s *ServiceSweep) repeat() {
	s.next = s.decide
	if s.tries++; s.tries >= lookTries {
		s.pass()
	}
}
