package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services/model"
)

const (
	// asksAtOnce is how many backlogs are counted, and how many services scaled, at
	// the same time: more, and a database has them all at once; fewer, and some that
	// hang hold up the others.
	asksAtOnce = 32
	// countLimit bounds a count, and nudgedLimit one whose caller waits. Counting a
	// large table exactly takes a second.
	countLimit  = 5 * time.Second
	nudgedLimit = 3 * time.Second
	// ecsLimit bounds what ECS is asked and told in one go, tries included.
	ecsLimit = 10 * time.Second
	// longestServiceReason bounds what is kept of an error, in bytes.
	longestServiceReason = 600
)

// ServiceSweep looks at services of runners: what waits for them and what they
// run. It writes down what is decided, then tells ECS; when it dies between the
// two, the next one decides the same again.
//
// What is decided on a look is written under the version that the row had before
// that look, so that nothing is decided on what somebody else has decided on
// since. Each service goes on as soon as its own backlog is counted: one that
// hangs holds up no other.
type ServiceSweep struct {
	op.Stages
	f     *Fleet
	names []string
	// nudged: somebody asked for it, so that it is no idle check.
	nudged bool
	limit  time.Duration // of a count

	rows  map[string]model.Service // of names that could be read
	under int                      // services that are asked for
	ready chan *serviceLook        // those that were; it has room for all
	// counting and telling are the turns of those that are asked for.
	counting, telling chan struct{}

	// overtaken: somebody else decided on a service between its look and its
	// decision, which was dropped.
	overtaken bool
	// failed says why a service could not be looked at or scaled. It keeps none of
	// the others.
	failed map[string]error
}

// serviceLook is one service on its way through a sweep.
type serviceLook struct {
	// row is as it was read before the look, and then as stored with the decision.
	row      model.Service
	look     model.Observation
	backlog  counted
	decision policy.ServiceDecision
	told     serviceTold
	next     func(context.Context, *serviceLook, time.Time) (op.Progress, error)
}

// counted is a backlog, or as much of it as is known and why not more.
type counted struct {
	model.Backlog
	err error
}

// NewServiceSweep begins a look at every service that is scaled.
func (f *Fleet) NewServiceSweep() *ServiceSweep {
	s := f.newServiceLook(f.scaled()...)
	s.nudged, s.limit, s.Events.Sweep = false, countLimit, "services"
	return s
}

// newServiceLook begins a look at some services because somebody asked for it.
func (f *Fleet) newServiceLook(names ...string) *ServiceSweep {
	s := &ServiceSweep{
		f: f, Stages: f.ops.Stages(""), names: names, nudged: true, limit: nudgedLimit,
		rows: map[string]model.Service{}, failed: map[string]error{}, ready: make(chan *serviceLook, len(names)),
		counting: make(chan struct{}, asksAtOnce), telling: make(chan struct{}, asksAtOnce),
	}
	s.Next = s.read
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

// read reads the rows, before anything is looked at. A service whose row is
// damaged is not looked at.
func (s *ServiceSweep) read(ctx context.Context, _ time.Time) (op.Progress, error) {
	var names []string
	for _, name := range s.names {
		row, err := s.f.services.Store.Service(ctx, name)
		switch {
		case err == nil:
			s.rows[name] = row
			names = append(names, name)
		case op.Transient(ctx, err):
			return op.Again, fmt.Errorf("read service %s: %w", name, err)
		default:
			s.failed[name] = fmt.Errorf("read service %s: %w", name, err)
			s.f.log.Warn("service not looked at: repair its row or delete it", "service", name, "error", err)
		}
	}
	s.names, s.Next = names, s.describe
	return op.Again, nil
}

// describe asks ECS for all services at once, which takes one request for many,
// and begins to count.
func (s *ServiceSweep) describe(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.names) == 0 {
		return op.Done, nil
	}
	limited, cancel := context.WithTimeout(ctx, ecsLimit)
	defer cancel()
	looks := s.f.services.Scaler.Describe(limited, s.names)
	for _, name := range s.names {
		l := &serviceLook{row: s.rows[name], look: looks[name]}
		s.ask(s.counting, l, s.decide, func() {
			if l.look.Err == nil {
				l.backlog = s.f.countBacklog(ctx, name, s.limit)
			}
		})
	}
	return s.await(ctx, now)
}

// ask asks for a service beside the others; then goes on with it.
func (s *ServiceSweep) ask(
	turns chan struct{}, l *serviceLook, then func(context.Context, *serviceLook, time.Time) (op.Progress, error), question func(),
) {
	s.under++
	l.next = then
	go func() {
		turns <- struct{}{}
		defer func() { <-turns }()
		question()
		s.ready <- l
	}()
}

// await waits until one of the services that are asked for can go on.
func (s *ServiceSweep) await(ctx context.Context, _ time.Time) (op.Progress, error) {
	s.Next = s.await
	if s.under == 0 {
		return op.Done, nil
	}
	select {
	case l := <-s.ready:
		s.under--
		s.Next = func(ctx context.Context, now time.Time) (op.Progress, error) { return l.next(ctx, l, now) }
		return op.Again, nil
	case <-ctx.Done():
		return op.Again, context.Cause(ctx)
	}
}

func (f *Fleet) countBacklog(ctx context.Context, name string, limit time.Duration) counted {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b, err := f.services.Services[name].Backlog.Count(ctx, name)
	return counted{b, err}
}

// decide decides on a service, and writes it down.
func (s *ServiceSweep) decide(ctx context.Context, l *serviceLook, now time.Time) (op.Progress, error) {
	d, next := s.decision(ctx, l, now)
	if s.Events.Dry {
		s.news(l.row, d, next, now)
		s.Next = s.await
		return op.Again, nil
	}
	stored, err := s.f.services.Store.UpdateService(ctx, next)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		// What was seen is older than what somebody else did: the next look sees both.
		s.overtaken, s.Next = true, s.await
		return op.Again, nil
	case err != nil:
		return op.Again, fmt.Errorf("write service %s: %w", next.Name, err)
	}
	s.news(l.row, d, next, now)
	l.row, l.decision, s.Next = stored, d, s.await
	if d.Action != policy.ServiceKeep {
		s.Next = func(ctx context.Context, now time.Time) (op.Progress, error) { return s.carry(ctx, l, now) }
	}
	return op.Again, nil
}

// decision is what to do with a service, and its row with it.
func (s *ServiceSweep) decision(ctx context.Context, l *serviceLook, now time.Time) (policy.ServiceDecision, model.Service) {
	row, look, backlog := l.row, l.look, l.backlog
	row.CheckedAt = now
	if look.Err != nil {
		s.failed[row.Name] = look.Err
		d := policy.ServiceDecision{Action: policy.ServiceKeep, Desired: row.Wanted, IdleChecks: row.IdleChecks, Reason: "it could not be looked at: " + oneLine(look.Err)}
		row.Reason = d.Reason
		return d, row
	}
	// By a clock that was ahead it was counted in the future: that holds up nothing.
	since := now.Sub(row.CountedAt)
	between := s.nudged || since >= 0 && since < s.f.timing.Services/2
	d := s.f.services.Services[row.Name].Policy.Scale(policy.ServiceFacts{
		Desired: look.Desired, Running: look.Running, Pending: look.Pending,
		Queued: backlog.Queued, Busy: backlog.Busy, More: backlog.More, IdleChecks: row.IdleChecks, Between: between,
	})
	if backlog.err != nil {
		d.Reason += ": " + oneLine(backlog.err)
		if d.Action == policy.ServiceKeep {
			s.failed[row.Name] = backlog.err
		}
	}
	if d.Action == policy.ServiceScaleIn {
		d = s.unlessHeld(ctx, d, l, now)
	}
	if !between {
		row.CountedAt = now
	}
	row.Tasks, row.Backlog = look.Tasks, backlog.Backlog
	row.IdleChecks, row.Wanted, row.Reason = d.IdleChecks, d.Desired, d.Reason
	return d, row
}

// unlessHeld keeps the runners of a service while the fleet is held, or while
// nobody can tell whether it is.
func (s *ServiceSweep) unlessHeld(ctx context.Context, d policy.ServiceDecision, l *serviceLook, now time.Time) policy.ServiceDecision {
	err := s.f.mayEnd(ctx, now)
	if err == nil {
		return d
	}
	s.fail(l.row.Name, err)
	d.Action, d.Desired = policy.ServiceKeep, l.look.Desired
	d.Reason = oneLine(err) + "; else it would go to zero: " + d.Reason
	return d
}

// fail notes why a service could not be scaled. The fleet's hold is no failure.
func (s *ServiceSweep) fail(name string, err error) {
	if held := new(FleetHeldError); !errors.As(err, &held) {
		s.failed[name] = err
	}
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
// heard.
func (s *ServiceSweep) news(before model.Service, d policy.ServiceDecision, after model.Service, now time.Time) {
	e := lifecycle.Event{At: now, Action: lifecycle.ActionKeep, Reason: fmt.Sprintf("service %s: %s", before.Name, d.Reason)}
	if d.Action != policy.ServiceKeep {
		e = scaleEvent(after, d, now)
	}
	s.Events.Collect("", e.Action, e.Reason)
	if d.Action == policy.ServiceKeep && !s.nudged && !s.Events.Dry && before.Reason != after.Reason {
		s.Events.Record(e)
	}
}

func scaleEvent(row model.Service, d policy.ServiceDecision, now time.Time) lifecycle.Event {
	return lifecycle.Event{
		At: now, Action: lifecycle.ActionScale,
		Reason: fmt.Sprintf("service %s goes from %d to %d: %s", row.Name, row.Desired, d.Desired, d.Reason),
	}
}
