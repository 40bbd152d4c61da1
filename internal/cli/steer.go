package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// longestHold is what the contract allows.
const longestHold = 24 * time.Hour

// HoldFlags say what is held, and how long.
type HoldFlags struct {
	// All holds the whole fleet.
	All    bool
	For    time.Duration
	Off    bool
	Reason string
}

// Hold keeps hosts, or the whole fleet, from being ended.
func (a *App) Hold(ctx context.Context, hosts []string, f HoldFlags) error {
	switch {
	case f.All == (len(hosts) > 0):
		return failure.Misused("name hosts, or the whole fleet with --all")
	case !f.Off && (f.For < time.Second || f.For > longestHold):
		return failure.Misused("--for %s: write 1s to 24h; --off ends a hold", f.For)
	}
	length := f.For
	if f.Off {
		length = 0
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	if f.All {
		return s.holdFleet(ctx, length, f.Reason)
	}
	var held []*remudav1.Instance
	for _, id := range hosts {
		resp, err := call(ctx, s, DefaultTimeout, "hold host "+id, s.fleet.HoldInstance,
			&remudav1.HoldInstanceRequest{InstanceId: id, Duration: durationpb.New(length), Reason: f.Reason})
		if err != nil {
			return err
		}
		held = append(held, resp.GetInstance())
	}
	return a.changed(held)
}

func (s *session) holdFleet(ctx context.Context, length time.Duration, reason string) error {
	resp, err := call(ctx, s, DefaultTimeout, "hold the fleet", s.fleet.HoldFleet,
		&remudav1.HoldFleetRequest{Duration: durationpb.New(length), Reason: reason})
	if err != nil {
		return err
	}
	if resp.GetUnstored() {
		s.app.note("The store takes no writes: only this controld holds, until it can store the hold.")
	}
	switch until := resp.GetUntilTime(); {
	case s.app.Output.ForPrograms():
		return output.Message(s.app.Stdout, s.app.Output, resp)
	case until == nil:
		_, err = fmt.Fprintln(s.app.Stdout, "No hold of the fleet is in force.")
	default:
		_, err = fmt.Fprintf(s.app.Stdout, "No host is ended before %s (%s).\n", until.AsTime().UTC().Format(time.RFC3339), view.When(until.AsTime(), s.app.Now()))
	}
	return failure.Of("write answer", err)
}

// changed shows hosts after an order.
func (a *App) changed(hosts []*remudav1.Instance) error {
	if a.Output.ForPrograms() {
		return output.Message(a.Stdout, a.Output, &remudav1.ListInstancesResponse{Instances: hosts})
	}
	return a.print(view.Hosts(hosts, a.Now(), a.wide()), "No host was changed.")
}

// TerminateFlags say why hosts are ended.
type TerminateFlags struct {
	Reason string
	// Yes asks no question.
	Yes bool
}

// Terminate ends hosts at once, with the jobs on them.
func (a *App) Terminate(ctx context.Context, hosts []string, f TerminateFlags) error {
	if strings.TrimSpace(f.Reason) == "" {
		return failure.Misused("--reason is required: it stays in the host's record")
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	if !f.Yes {
		if err := s.confirmEnd(ctx, hosts); err != nil {
			return err
		}
	}
	var ended []*remudav1.Instance
	for _, id := range hosts {
		resp, err := call(ctx, s, DefaultTimeout, "terminate host "+id, s.fleet.TerminateInstance,
			&remudav1.TerminateInstanceRequest{InstanceId: id, Reason: f.Reason})
		if err != nil {
			return mayBeHeld(err, id)
		}
		ended = append(ended, resp.GetInstance())
	}
	return a.changed(ended)
}

// mayBeHeld adds to an error how a hold is taken away, which is what the contract has FAILED_PRECONDITION for here.
func mayBeHeld(err error, id string) error {
	return failure.WithRemedy(err, failure.Conflict,
		fmt.Sprintf("`remuda hold %s --off` takes a hold of the host away, and `remuda hold --all --off` one of the fleet.", id))
}

// confirmEnd shows the hosts, with what runs on them, and asks.
func (s *session) confirmEnd(ctx context.Context, ids []string) error {
	if !s.app.InTerminal {
		return errNoTerminal()
	}
	var hosts []*remudav1.Instance
	for _, id := range ids {
		resp, err := call(ctx, s, DefaultTimeout, "read host "+id, s.fleet.GetInstance, &remudav1.GetInstanceRequest{InstanceId: id})
		if err != nil {
			return err
		}
		hosts = append(hosts, resp.GetInstance())
	}
	if err := view.Hosts(hosts, s.app.Now(), false).Write(s.app.Stderr, false); err != nil {
		return failure.Of("write hosts", err)
	}
	question := "End this host"
	if len(hosts) > 1 {
		question = fmt.Sprintf("End these %d hosts", len(hosts))
	}
	if slices.ContainsFunc(hosts, (*remudav1.Instance).GetBusy) {
		question += ", with the job at work"
	}
	return s.app.confirm(ctx, question)
}

func errNoTerminal() error {
	return failure.Misused("this is asked for confirmation on a terminal; without one, --yes is required")
}

// confirm asks a question, and is nil after a yes.
func (a *App) confirm(ctx context.Context, question string) error {
	if !a.InTerminal {
		return errNoTerminal()
	}
	fmt.Fprintf(a.Stderr, "%s? [y/N] ", question)
	switch answer, err := a.answer(ctx); {
	case err != nil:
		return failure.Of("", err)
	case answer != "y" && answer != "yes":
		return &failure.Error{Code: failure.Failed, Err: errors.New("nothing was done")}
	}
	return nil
}

// answer is a line that a person types. The end of the input is an empty one, and Ctrl-C ends the wait for it.
func (a *App) answer(ctx context.Context) (string, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(a.Stdin).ReadString('\n')
		line <- strings.ToLower(strings.TrimSpace(text))
	}()
	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		fmt.Fprintln(a.Stderr)
		return "", fmt.Errorf("interrupted, and nothing was done: %w", ctx.Err())
	}
}

// Refresh makes the world match the configuration, or with dry says what it would do.
func (a *App) Refresh(ctx context.Context, dry bool) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	done := a.progress(ctx, fixed("waiting for controld to look at every host"))
	resp, err := call(ctx, s, refreshWithin, "refresh", s.fleet.Refresh, &remudav1.RefreshRequest{DryRun: dry})
	done()
	switch {
	case err != nil:
		return err
	case a.Output.ForPrograms():
		return output.Message(a.Stdout, a.Output, resp)
	}
	if err := a.print(view.Resources(resp.GetResources()), "Every resource is as the configuration says."); err != nil {
		return err
	}
	if len(resp.GetResources()) > 0 && len(resp.GetDecisions()) > 0 {
		fmt.Fprintln(a.Stdout)
	}
	return a.print(view.Decisions(resp.GetDecisions()), "There is nothing to decide about any host.")
}

// refreshWithin is for a fleet that is set up: tables and launch templates take EC2 and DynamoDB a minute or two.
const refreshWithin = 5 * time.Minute
