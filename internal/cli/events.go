package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/subject"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// EventsFlags say which events are shown.
type EventsFlags struct {
	Run, Host, Pool string
	// Repository is "owner/name", or an owner alone.
	Repository string
	// Since is how far back the history is shown; 0: that of the whole fleet is not, and of a run or a host all of it is.
	Since time.Duration
	// Until ends the history, and nothing is followed: a time of RFC 3339, or how long ago. Empty: now.
	Until string
	// Follow shows what happens from now on.
	Follow bool
}

// Events shows what happened and happens.
func (a *App) Events(ctx context.Context, f EventsFlags) error {
	f = a.past(f)
	until, err := f.until(a.Now())
	if err != nil {
		return err
	}
	f.Follow = f.Follow && until.IsZero()
	about, err := f.about()
	if err != nil {
		return err
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	p := &eventPrinter{session: s, flags: f, about: about, until: until, pools: map[string]string{}, seen: map[string]bool{}}
	if err := s.mayBeEmpty(ctx, f.Pool, 0); err != nil {
		return err
	}
	stream, err := p.watch(ctx)
	if err != nil {
		return err
	}
	if err := p.history(ctx); err != nil {
		return err
	}
	if stream == nil {
		if !p.headed {
			a.note("No such event is known; of what happened before the last 24 hours none is.")
		}
		return nil
	}
	p.head()
	return p.follow(ctx, stream)
}

// past are the flags for the fleet of a snapshot, in which nothing happens any more.
func (a *App) past(f EventsFlags) EventsFlags {
	if a.Snapshot == "" {
		return f
	}
	if f.Follow = false; f.Run+f.Host == "" && f.Since == 0 {
		f.Since = 24 * time.Hour
	}
	return f
}

// until is when the history ends; zero: now.
func (f EventsFlags) until(now time.Time) (time.Time, error) {
	if f.Until == "" {
		return time.Time{}, nil
	}
	if f.Run+f.Host == "" && f.Since == 0 {
		return time.Time{}, failure.Misused("--until needs --run, --host or --since")
	}
	if ago, err := time.ParseDuration(f.Until); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	until, err := time.Parse(time.RFC3339, f.Until)
	if err != nil {
		return until, failure.Misused("--until: %q is neither a time such as 2026-11-01T06:00:00Z nor how long ago, such as 8h", f.Until)
	}
	return until, nil
}

func (f EventsFlags) about() (subject.Subject, error) {
	name, flag := f.Run, "--run"
	switch {
	case f.Run != "" && f.Host != "":
		return subject.Subject{}, failure.Misused("--run and --host exclude each other")
	case f.Since < 0 || f.Since > 24*time.Hour:
		return subject.Subject{}, failure.Misused("--since: %s is not within the last 24h", f.Since)
	case f.Host != "":
		name, flag = f.Host, "--host"
	case f.Run == "" && f.Since == 0 && !f.Follow:
		return subject.Subject{}, failure.Misused("--follow=false needs --run, --host or --since")
	case f.Run == "":
		return subject.Subject{}, nil
	}
	about, err := subject.Parse([]string{name})
	if err != nil {
		return about, failure.Misused("%s: %v", flag, err)
	}
	if (f.Host != "") != (about.InstanceID != "") {
		return about, failure.Misused("%s: %q is not what it takes", flag, name)
	}
	return about, nil
}

// eventPrinter prints events that pass its filters, each once.
type eventPrinter struct {
	*session
	flags EventsFlags
	about subject.Subject
	// until is when the history ends; zero: now.
	until time.Time
	// pools are those of hosts, which events do not name; "" is a host that is gone.
	pools map[string]string
	// seen are the events of the history, which the stream may send again.
	seen map[string]bool
	// headed: the line above the events is printed.
	headed bool
}

// head prints the line above the events once: after what can fail.
func (p *eventPrinter) head() {
	if !p.headed && !p.app.Output.ForPrograms() {
		fmt.Fprintln(p.app.Stdout, view.EventHead(p.app.wide()))
	}
	p.headed = true
}

// watch begins to follow, before the history is read, so that nothing is missed in between. nil: nothing is followed.
func (p *eventPrinter) watch(ctx context.Context) (grpc.ServerStreamingClient[remudav1.WatchFleetResponse], error) {
	if !p.flags.Follow {
		return nil, nil
	}
	stream, err := p.fleet.WatchFleet(ctx, &remudav1.WatchFleetRequest{RunId: p.about.RunID})
	if err == nil {
		_, err = stream.Header() // it comes when the watch has begun
	}
	return stream, p.failed(ctx, "watch events", err)
}

// history prints what is known of a run or a host, or of the last hours of the fleet.
func (p *eventPrinter) history(ctx context.Context) error {
	fleet := p.about == (subject.Subject{})
	switch {
	case fleet && p.flags.Since > 0:
		return p.last(ctx)
	case fleet, p.about.InstanceID == "" && p.about.Repository == "" && p.flags.Follow && p.flags.Since == 0:
		return nil
	}
	req, err := p.explainable(ctx, p.about)
	if err != nil {
		return err
	}
	resp, err := p.explain(ctx, req)
	if failure.CodeOf(err) == failure.NotFound && p.flags.Follow {
		return nil // nothing has happened yet
	}
	for _, e := range resp.GetEvents() {
		p.seen[key(e)] = true
		if since := p.flags.Since; since > 0 && e.GetEventTime().AsTime().Before(p.app.Now().Add(-since)) {
			continue
		}
		if !p.until.IsZero() && !e.GetEventTime().AsTime().Before(p.until) {
			continue
		}
		if err := p.print(ctx, e); err != nil {
			return err
		}
	}
	return err
}

// maxEvents is how many events a call has at most.
const maxEvents = 10_000

// last prints what happened in the last hours.
func (p *eventPrinter) last(ctx context.Context) error {
	req := &remudav1.ListEventsRequest{Since: durationpb.New(p.flags.Since), RowLimit: maxEvents}
	if !p.until.IsZero() {
		req.UntilTime = timestamppb.New(p.until)
	}
	resp, err := call(ctx, p.session, DefaultTimeout, "list events", p.fleet.ListEvents, req)
	if err != nil {
		return err
	}
	if from := resp.GetFromTime().AsTime(); p.app.Now().Sub(from) < p.flags.Since-time.Minute {
		fmt.Fprintf(p.app.Stderr, "There were too many events to show: these are from %s on. What was before: --until %s\n",
			from.Local().Format(time.DateTime), from.UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339))
	}
	for _, e := range resp.GetEvents() {
		p.seen[key(e)] = true
		if err := p.print(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// follow prints what the stream sends until ctx ends, which is how a person leaves.
func (p *eventPrinter) follow(ctx context.Context, stream grpc.ServerStreamingClient[remudav1.WatchFleetResponse]) error {
	for {
		resp, err := stream.Recv()
		switch {
		case ctx.Err() != nil, errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return p.failed(ctx, "watch events", err)
		}
		if e := resp.GetEvent(); !p.seen[key(e)] {
			if err := p.print(ctx, e); err != nil {
				return err
			}
		}
	}
}

// key tells events apart.
func key(e *remudav1.Event) string {
	return fmt.Sprint(e.GetEventTime().AsTime().UnixNano(), e.GetInstanceId(), e.GetAction(), e.GetAssignment(), e.GetRequestId(), e.GetReason())
}

func (p *eventPrinter) print(ctx context.Context, e *remudav1.Event) error {
	if wanted, err := p.wanted(ctx, e); err != nil || !wanted {
		return err
	}
	p.head()
	if p.app.Output.ForPrograms() {
		return output.Line(p.app.Stdout, p.app.Output, e)
	}
	_, err := fmt.Fprintln(p.app.Stdout, view.Event(e, time.Local, p.app.wide()))
	return failure.Of("write event", err)
}

// wanted reports whether an event passes the filters.
func (p *eventPrinter) wanted(ctx context.Context, e *remudav1.Event) (bool, error) {
	switch {
	case p.about.InstanceID != "" && e.GetInstanceId() != p.about.InstanceID:
		return false, nil
	case p.flags.Repository != "" && !view.OfRepository(e.GetRepository(), p.flags.Repository):
		return false, nil
	case p.flags.Pool == "":
		return true, nil
	}
	pool, err := p.poolOf(ctx, e)
	return pool == p.flags.Pool, err
}

// poolOf is the pool of an event, which names it only where it is not that of its host.
func (p *eventPrinter) poolOf(ctx context.Context, e *remudav1.Event) (string, error) {
	instanceID := e.GetInstanceId()
	pool, known := p.pools[instanceID]
	switch {
	case e.GetPool() != "" || instanceID == "":
		return e.GetPool(), nil
	case known:
		return pool, nil
	}
	bounded, cancel := p.bound(ctx, DefaultTimeout)
	defer cancel()
	resp, err := p.fleet.GetInstance(bounded, &remudav1.GetInstanceRequest{InstanceId: instanceID})
	if err != nil && status.Code(err) != codes.NotFound {
		return "", p.failed(ctx, "read host "+instanceID, err)
	}
	p.pools[instanceID] = resp.GetInstance().GetPool()
	return p.pools[instanceID], nil
}
