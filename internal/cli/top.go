package cli

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/top"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Top shows the hosts until a person has seen enough, and takes orders by keys. The first reading must succeed.
func (a *App) Top(ctx context.Context, f HostsFlags, every time.Duration) error {
	filter, err := f.filter()
	switch {
	case err != nil:
		return err
	case a.Snapshot != "":
		return a.picture(ctx, filter)
	case !a.InTerminal || !a.OutTerminal || a.Output.ForPrograms():
		return failure.Misused("top is for a terminal; `remuda ps --watch` prints the hosts again and again, and `remuda ps --output json` is for programs")
	case every < 100*time.Millisecond:
		return failure.Misused("--every %s: write 100ms or more", every)
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	fleet := watched{s, filter}
	hosts, err := fleet.Hosts(ctx)
	if err != nil {
		return err
	}
	model := top.New(ctx, top.Options{Fleet: fleet, Hosts: hosts, Now: a.Now, Every: every, Color: a.Color()})
	_, err = tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(a.Stdin), tea.WithOutput(a.Stdout), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return nil // the terminal is as it was
	}
	return failure.Of("show hosts", err)
}

// picture shows the hosts of a snapshot once, as the live view does.
func (a *App) picture(ctx context.Context, filter view.Filter) error {
	if a.Output.ForPrograms() {
		return failure.Misused("top is for people; `remuda ps --output json` is for programs")
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	hosts, err := watched{s, filter}.Hosts(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.Stdout, top.New(ctx, top.Options{Hosts: hosts, Now: a.Now, Color: a.Color()}).Picture())
	return failure.Of("show hosts", err)
}

// watched is the fleet of a live view.
type watched struct {
	*session
	filter view.Filter
}

// topHold is how long a key holds a host.
const topHold = time.Hour

func (w watched) Hosts(ctx context.Context) ([]*remudav1.Instance, error) {
	list, err := w.hosts(ctx, &remudav1.ListInstancesRequest{States: alive, Pool: w.filter.Pool})
	if err == nil {
		err = w.mayBeEmpty(ctx, w.filter.Pool, len(list))
	}
	return w.filter.Apply(list, w.app.Now()), err
}

func (w watched) Explain(ctx context.Context, id string) (string, error) {
	resp, err := w.explain(ctx, &remudav1.ExplainRunRequest{InstanceId: id})
	if err != nil {
		return "", err
	}
	return view.Why(resp, false), nil
}

func (w watched) Hold(ctx context.Context, id string) (string, error) {
	_, err := call(ctx, w.session, DefaultTimeout, "hold host "+id, w.fleet.HoldInstance,
		&remudav1.HoldInstanceRequest{InstanceId: id, Duration: durationpb.New(topHold), Reason: "held in remuda top"})
	return fmt.Sprintf("%s is held for %s; `remuda hold %s --off` ends that", id, view.Span(topHold), id), err
}

func (w watched) Drain(ctx context.Context, id string) (string, error) {
	_, err := call(ctx, w.session, DefaultTimeout, "drain host "+id, w.fleet.Drain, &remudav1.DrainRequest{InstanceId: id, Reason: "drained in remuda top"})
	return id + " leaves once it has no run", err
}
