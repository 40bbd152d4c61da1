package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/subject"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	// defaultWithin is that of the contract.
	defaultWithin = 10 * time.Minute
	// answerMargin is how long the answer may come after the request's own deadline.
	answerMargin = 30 * time.Second
	// releaseWithin is for a release that waits: a busy host finishes its job first.
	releaseWithin = time.Hour
)

// ProvisionFlags say what a run gets. Zero values are left to controld.
type ProvisionFlags struct {
	Attempt, Count, Minimum int32
	Pool, Class, RequestID  string
	Spot, OnDemandFallback  bool
	ReplaceInterrupted      bool
	Types, Labels           []string
	MaxRuntime, Within      time.Duration
}

func (f ProvisionFlags) request(run subject.Subject) *remudav1.ProvisionRequest {
	req := &remudav1.ProvisionRequest{
		Repository: run.Repository, RunId: run.RunID, RunAttempt: some(f.Attempt), InstanceCount: some(f.Count), MinimumCount: some(f.Minimum),
		Pool: f.Pool, ResourceClass: f.Class, RequestId: f.RequestID, AllowedInstanceTypes: f.Types, Labels: f.Labels,
		AllowOnDemandFallback: f.OnDemandFallback, ReplaceInterrupted: f.ReplaceInterrupted,
	}
	if f.Spot {
		req.UsageClass = remudav1.UsageClass_USAGE_CLASS_SPOT
	}
	if f.MaxRuntime > 0 {
		req.MaxRuntime = durationpb.New(f.MaxRuntime)
	}
	if f.Within > 0 {
		req.Timeout = durationpb.New(f.Within)
	}
	return req
}

// some is a number that was given.
func some(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

// Provision gets hosts for a run and waits until they are ready.
func (a *App) Provision(ctx context.Context, args []string, f ProvisionFlags) error {
	run, err := subject.ParseRun(args)
	if err != nil {
		return failure.Misused("%v", err)
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	done := a.progress(ctx, s.waitsFor(run))
	usual := cmp.Or(f.Within, defaultWithin) + answerMargin
	resp, err := call(ctx, s, usual, "provision hosts for "+run.String(), s.fleet.Provision, f.request(run))
	done()
	view.Sort(resp.GetInstances())
	switch {
	case err != nil:
		return provisionFailed(ctx, run, err)
	case a.Output.ForPrograms():
		return output.Message(a.Stdout, a.Output, resp)
	}
	a.note("%d of the pool, %d launched; `remuda release %s` gives them back.", resp.GetReusedCount(), resp.GetCreatedCount(), run)
	return a.print(view.Hosts(resp.GetInstances(), a.Now(), a.wide()), "No host was asked for.")
}

// provisionFailed adds to an error what becomes of a request whose caller goes away, and where to read why hosts are missing.
func provisionFailed(ctx context.Context, run subject.Subject, err error) error {
	var known *failure.Error
	if errors.As(err, &known) && (ctx.Err() != nil || known.Code == failure.Interrupted) {
		known.Code, known.Err = failure.Interrupted, errors.New("stopped waiting")
		known.Remedy = fmt.Sprintf("The request goes on: `remuda why %s` says how far it is, and `remuda release %s` gives its hosts back.", run, run)
	}
	if known != nil && known.Code == failure.NoCapacity {
		known.Remedy = fmt.Sprintf("`remuda why %s` says what was short.", run)
	}
	return err
}

// waitsFor says what a run waits for: the last thing that happened to it, or else how its request stands. A token counts
// once, so nothing is asked with it.
func (s *session) waitsFor(run subject.Subject) func(context.Context) string {
	if s.target.TokenFile != "" {
		return fixed("waiting for hosts")
	}
	return func(ctx context.Context) string {
		bounded, cancel := context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
		resp, err := s.fleet.ExplainRun(bounded, &remudav1.ExplainRunRequest{Repository: run.Repository, RunId: run.RunID})
		if err != nil {
			return "waiting for controld"
		}
		return waiting(resp)
	}
}

// waiting is the newest of what an explanation knows about a run.
func waiting(resp *remudav1.ExplainRunResponse) string {
	events := resp.GetEvents()
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].GetInstanceId() != "" {
			return fmt.Sprintf("waiting for hosts; last: %s %s, %s", events[i].GetInstanceId(), view.Action(events[i].GetAction()), events[i].GetReason())
		}
	}
	if sentences := resp.GetSentences(); len(sentences) > 0 {
		return "waiting for hosts; " + strings.TrimSuffix(sentences[0], ".")
	}
	return "waiting for hosts"
}

// ReleaseFlags say how a run's hosts are given back.
type ReleaseFlags struct {
	Attempt int32
	// Wait waits until each host is pooled or has failed.
	Wait bool
}

// Release gives back the hosts of a run.
func (a *App) Release(ctx context.Context, args []string, f ReleaseFlags) error {
	run, err := subject.ParseRun(args)
	if err != nil {
		return failure.Misused("%v", err)
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	usual, done := DefaultTimeout, func() {}
	if f.Wait {
		look, err := s.cleaning(ctx, run)
		if err != nil {
			return err
		}
		usual, done = releaseWithin, a.progress(ctx, look)
	}
	resp, err := call(ctx, s, usual, "release "+run.String(), s.fleet.Release,
		&remudav1.ReleaseRequest{Repository: run.Repository, RunId: run.RunID, RunAttempt: some(f.Attempt), Wait: f.Wait})
	done()
	view.Sort(resp.GetInstances())
	switch {
	case err != nil:
		return err
	case a.Output.ForPrograms():
		return output.Message(a.Stdout, a.Output, resp)
	}
	if n := len(resp.GetInstances()); n > 0 {
		a.note("%d taken from the run, %d pooled, %d failed.", n, resp.GetPooledCount(), resp.GetFailedCount())
	}
	return a.print(view.Hosts(resp.GetInstances(), a.Now(), a.wide()), "The run had no hosts.")
}

// cleaning says what the release of a run waits for. A host that is to end stays while it is held, and a release waits for that too. The hosts are
// looked up before the release, since after it they have no run. A token counts once, so nothing is asked with it.
func (s *session) cleaning(ctx context.Context, run subject.Subject) (func(context.Context) string, error) {
	usual := "waiting until each host of " + run.String() + " is clean and pooled; a busy one finishes its job first"
	if s.target.TokenFile != "" {
		return fixed(usual), nil
	}
	before, err := s.hosts(ctx, &remudav1.ListInstancesRequest{States: alive, Repository: run.Repository, RunId: run.RunID})
	if err != nil {
		return nil, err
	}
	of := map[string]bool{}
	for _, h := range before {
		of[h.GetInstanceId()] = true
	}
	return func(ctx context.Context) string {
		now, err := s.hosts(ctx, &remudav1.ListInstancesRequest{States: []remudav1.State{remudav1.State_STATE_IDLE}, Repository: run.Repository})
		if err != nil {
			return "waiting for controld"
		}
		return cmp.Or(heldBack(now, of, s.app.Now()), usual)
	}, nil
}

// heldBack names the first of some hosts that a hold keeps from being ended, or "".
func heldBack(hosts []*remudav1.Instance, of map[string]bool, now time.Time) string {
	for _, h := range hosts {
		if until := h.GetHoldTime(); of[h.GetInstanceId()] && h.GetPooledTime() == nil && until != nil && until.AsTime().After(now) {
			return fmt.Sprintf("waiting: %s is held until %s, and does not end before; `remuda why %s`",
				h.GetInstanceId(), until.AsTime().UTC().Format(time.RFC3339), h.GetInstanceId())
		}
	}
	return ""
}
