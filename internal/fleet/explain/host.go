package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/jobname"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// OfRun names a workflow run.
type OfRun struct{ Repository, RunID string }

// ExplainHost describes one host: what it does, what is known of it and from which source, what is awaited
// and what happens then, and how it came to this. With a run it describes only a host that serves the run
// now, and only that run. Any other host is ErrNotFound, like an unknown one.
func (ex *Explainer) ExplainHost(ctx context.Context, instanceID string, of OfRun, now time.Time) (Explanation, error) {
	var e Explanation
	r, err := ex.Hosts.Find(ctx, instanceID)
	if err != nil {
		return e, fmt.Errorf("instance %s: %w", instanceID, err)
	}
	if of.RunID != "" && (r.RunID != of.RunID || r.Repository != of.Repository) {
		return e, fmt.Errorf("instance %s of run %s of %s: %w", instanceID, of.RunID, of.Repository, lifecycle.ErrNotFound)
	}
	facts, err := ex.Hosts.LoadFacts(ctx, []lifecycle.Record{r}, now)
	if err != nil {
		return e, err
	}
	history, err := ex.historyOf(ctx, r, of)
	if err != nil {
		return e, err
	}
	hold, err := ex.Hosts.FleetHold(ctx)
	if err != nil {
		return e, err
	}
	facts[0].FleetHold = &hold
	told := hostExplainer{env: ex, now: now, Facts: facts[0]}
	if told.job, err = ex.jobOn(ctx, r, now); err != nil {
		return e, err
	}
	cloud, runner := told.askCloud(ctx), told.askGitHub(ctx)
	e.Events = history.Events
	e.Sentences = append(e.Sentences, told.state(history.Events), told.work())
	e.Sentences = append(e.Sentences, compact(told.runs(), told.warm(), told.agent())...)
	e.Sentences = append(e.Sentences, compact(cloud, runner)...)
	e.Sentences = append(e.Sentences, compact(holdSentence(hold, now))...)
	d := ex.Hosts.Decide(told.Facts, now)
	e.Sentences = append(e.Sentences, told.marks(d)...)
	e.Sentences = append(e.Sentences, said(history.Events, r, d.Code)...)
	e.Sentences = append(e.Sentences, told.next(d)...)
	if !history.From.IsZero() {
		e.Sentences = append(e.Sentences, fmt.Sprintf("Its history is long; events before %s are not shown.", hosts.ClockTime(history.From)))
	}
	for _, event := range e.Events {
		e.Sentences = append(e.Sentences, eventSentence(event))
	}
	return e, nil
}

// straysBefore is how long before its record the history of a host may begin.
const straysBefore = time.Minute

// historyOf is the history of a host. Of a run it is what happened to the host in that run. Else, where the
// history is too long to be read to its beginning, what there is of its run goes before it.
func (ex *Explainer) historyOf(ctx context.Context, r lifecycle.Record, of OfRun) (lifecycle.HostHistory, error) {
	if of.RunID != "" {
		events, err := ex.inRun(ctx, r)
		return lifecycle.HostHistory{Events: events}, err
	}
	h, err := ex.Store.EventsOfInstance(ctx, r.InstanceID, r.CreatedAt.Add(-straysBefore), time.Time{}, explainEvents)
	if err != nil {
		return h, fmt.Errorf("list events of instance %s: %w", r.InstanceID, err)
	}
	if !h.From.IsZero() && r.RunID != "" && len(h.Events) < explainEvents {
		events, err := ex.inRun(ctx, r)
		if err != nil {
			return h, err
		}
		events = slices.DeleteFunc(events, func(e lifecycle.Event) bool {
			return slices.ContainsFunc(h.Events, func(known lifecycle.Event) bool { return known.ID == e.ID })
		})
		h.Events = append(events, h.Events...)
	}
	slices.SortStableFunc(h.Events, byTime)
	return h, nil
}

// inRun is the history of a host in the run that it serves.
func (ex *Explainer) inRun(ctx context.Context, r lifecycle.Record) ([]lifecycle.Event, error) {
	events, err := ex.newestEvents(ctx, r.Repository, r.RunID)
	return slices.DeleteFunc(events, func(e lifecycle.Event) bool { return e.InstanceID != r.InstanceID }), err
}

func byTime(a, b lifecycle.Event) int { return a.At.Compare(b.At) }

// hostExplainer makes sentences of what is known of a host.
type hostExplainer struct {
	env *Explainer
	now time.Time
	lifecycle.Facts
	// job is the one that the host runs; nil: none is known.
	job *RunningJob
}

// askCloud asks EC2, or the stand-in for it, about the machine: one call. If there is no answer
// the sentence says so, and nothing is known.
func (t *hostExplainer) askCloud(ctx context.Context) string {
	cloud := t.env.Hosts.Policy(t.Record.Pool).CloudName()
	name := strings.ToUpper(cloud[:1]) + cloud[1:]
	if t.Record.State == lifecycle.StateTerminated && t.Record.DueAt.IsZero() {
		return name + " confirmed the end of its machine."
	}
	clouds, err := t.env.Hosts.Describe(ctx, []lifecycle.Record{t.Record}, t.now)
	if err != nil {
		return fmt.Sprintf("%s could not be asked about its machine: %v.", name, err)
	}
	m, ok := clouds[t.Record.InstanceID]
	if !ok {
		return name + " does not know its machine yet, which is young."
	}
	t.Cloud = &m
	if !m.Shown() {
		return name + " does not show its machine: it ended more than an hour ago, or controld asks another region or account than it is in."
	}
	says := map[lifecycle.MachineState]string{
		lifecycle.MachinePending: "is starting", lifecycle.MachineRunning: "runs", lifecycle.MachineEnding: "is ending", lifecycle.MachineStopping: "is stopping", lifecycle.MachineStopped: "is stopped", lifecycle.MachineGone: "is gone",
	}[m.State]
	if m.Impaired {
		says += fmt.Sprintf(", impaired by the health checks of %s", cloud)
	}
	if m.Bypass {
		says += ", and that it is tagged remuda:bypass-removal=true: scale-down leaves it alone"
	}
	return fmt.Sprintf("%s says that its machine %s.", name, says)
}

// askGitHub asks GitHub about the runner: one or two calls, and none for a host that has no registration.
func (t *hostExplainer) askGitHub(ctx context.Context) string {
	r := t.Record
	if r.RunnerName == "" {
		return ""
	}
	runner, err := t.env.GitHub.FindRunner(ctx, r.Repository, r.RunnerName)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return fmt.Sprintf("GitHub has no runner %s in %s.", r.RunnerName, r.Repository)
	case err != nil:
		return fmt.Sprintf("GitHub could not be asked about runner %s: %v.", r.RunnerName, err)
	}
	status, busy := "offline", "not busy"
	if runner.Online {
		status = "online"
	}
	if runner.Busy {
		busy = "busy"
	}
	return fmt.Sprintf("GitHub has its runner %s, id %d, %s and %s (busy lags there: the agent's report counts).", r.RunnerName, runner.ID, status, busy)
}

// state says what the host is, and since when.
func (t *hostExplainer) state(history []lifecycle.Event) string {
	r := t.Record
	since, why := since(r, history)
	return fmt.Sprintf("Host %s (%s) of pool %s is %s since %s: %s.", r.InstanceID, t.hardware(), r.Pool, condition(r), t.when(since), cmp.Or(why, "no reason was given"))
}

// condition is that of the record. A host that was launched ahead of need boots until it is in
// the pool: no run has released it.
func condition(r lifecycle.Record) string {
	if r.Releasing() && r.Fresh() {
		return "booting"
	}
	return r.Condition()
}

// since is when a host became what it is, and why, as far back as its history
// goes. Its record is written for smaller things too.
func since(r lifecycle.Record, history []lifecycle.Event) (at time.Time, why string) {
	for _, e := range slices.Backward(history) {
		if e.InstanceID == r.InstanceID && e.To == r.Condition() && e.From != e.To {
			return e.At, e.Reason
		}
	}
	return r.UpdatedAt, r.Reason
}

func (t *hostExplainer) hardware() string {
	r := t.Record
	parts := compact(r.InstanceType, r.ResourceClass, string(r.UsageClass), r.Zone)
	return strings.Join(parts, ", ")
}

// work says which run the host serves, or may serve next.
func (t *hostExplainer) work() string {
	r := t.Record
	life := fmt.Sprintf("It was launched at %s", t.when(cmp.Or(r.LaunchedAt, r.CreatedAt)))
	switch {
	case r.RunID != "" && r.JobsOf != "":
		return fmt.Sprintf("%s and serves one job of job pool %s, for its request %s, as its assignment %d.", life, r.Pool, r.RequestID, r.Assignment)
	case r.RunID != "":
		return fmt.Sprintf("%s and serves run %s of %s, %sfor request %s, as its assignment %d.", life, r.RunID, r.Repository, attempt("", r.RunAttempt, ", "), r.RequestID, r.Assignment)
	case r.State == lifecycle.StateTerminated:
		return fmt.Sprintf("%s and served %s.", life, plural.Of(r.Uses, "run", "runs"))
	case r.TrustKey == "":
		return fmt.Sprintf("%s, has served no run yet and may serve any that its pool is for.", life)
	}
	return fmt.Sprintf("%s, has served %s and may serve the next of %s.", life, plural.Of(r.Uses, "run", "runs"), r.TrustKey)
}

// runs says which job the host runs, and where people see it. Empty: none is known.
func (t *hostExplainer) runs() string {
	if t.job == nil {
		return ""
	}
	j := t.job.Job
	return fmt.Sprintf("It runs job %s of run %s of %s, %ssince %s%s.", jobname.Of(j), j.RunID, j.Repository, attempt("", j.RunAttempt, ", "), t.when(j.StartedAt), t.job.at())
}

// agent says what the host's agent last reported. Reports are untrusted, and are read as far as
// they may be believed.
func (t *hostExplainer) agent() string {
	p := t.Report
	switch {
	case t.Record.State == lifecycle.StateTerminated:
		return "Its agent's reports are ignored."
	case p == nil || p.HeartbeatAt.IsZero():
		return "There is no valid report from its agent."
	}
	s := fmt.Sprintf("Its agent was last heard at %s: %s", t.when(p.HeartbeatAt), cmp.Or(string(p.Signal), "no signal"))
	if p.Cause != lifecycle.CauseNone {
		s += fmt.Sprintf(" (cause: %s)", p.Cause)
	}
	if p.Assignment != t.Record.Assignment {
		s += fmt.Sprintf(" for assignment %d, which is not the current one", p.Assignment)
	}
	if p.Busy {
		s += ", a job runs"
	} else {
		s += ", no job runs"
	}
	if p.Jobs > 0 {
		s += fmt.Sprintf(", %d begun", p.Jobs)
	}
	if said := line.First(p.Detail); said != "" {
		s += "; it says: " + said
	}
	return s + "."
}

// reason is that of a decision. The hold of the fleet has a sentence of its own, so it is named shortly.
func (t *hostExplainer) reason(d lifecycle.Decision) string {
	if h := t.FleetHold; h != nil && d.Code == lifecycle.ReasonFleetHeld {
		return strings.Replace(d.Reason, h.String(), "the fleet is held", 1)
	}
	return d.Reason
}

// marks are what was noted on the record beside its state, unless what is decided says it.
func (t *hostExplainer) marks(d lifecycle.Decision) (sentences []string) {
	r := t.Record
	note := func(when bool, format string, args ...any) {
		if when {
			sentences = append(sentences, fmt.Sprintf(format, args...))
		}
	}
	if r.State == lifecycle.StateTerminated {
		return nil // what they were for is over
	}
	note(r.Held(t.now) && !r.FleetHeld && d.Code != lifecycle.ReasonHeld, "An operator holds it until %s: nothing claims or ends it.", t.when(r.Hold))
	note(r.Retiring, "It is retiring: no run gets it any more, and it leaves when it is next idle.")
	note(r.Retiring && r.RetiringReason != "", "Why it retires: %s.", r.RetiringReason)
	note(!r.InterruptionAt.IsZero(), "EC2 announced that it takes the machine back at %s.", t.when(r.InterruptionAt))
	note(r.ReplacedBy != "", "Request %s gets its run another host in its place.", r.ReplacedBy)
	note(!r.OrphanAt.IsZero(), "Scale-down has marked it as an orphan since %s: GitHub did not list it.", t.when(r.OrphanAt))
	note(!r.IdleDetectedAt.IsZero(), "Scale-down first read it as idle at %s.", t.when(r.IdleDetectedAt))
	note(r.ClaimFailures > 0, "Its last %s failed by its own fault.", plural.Of(r.ClaimFailures, "registration", "registrations"))
	return sentences
}

// next says what is decided now, what is awaited, and what happens then.
func (t *hostExplainer) next(d lifecycle.Decision) (sentences []string) {
	r := t.Record
	if r.State == lifecycle.StateTerminated && r.DueAt.IsZero() {
		return []string{"Nothing is left to be done for it."}
	}
	if d.Action != lifecycle.ActionKeep {
		return append(sentences, fmt.Sprintf("Next: %s%s, since: %s.", d.Action, t.by(), t.reason(d)))
	}
	sentences = append(sentences, fmt.Sprintf("It is kept: %s.", t.reason(d)))
	before := "If nothing changes until"
	switch s := t.scaleDown(); {
	case s != "": // which comes before its threshold, as a rule
		sentences, before = append(sentences, s), "If it is there still at"
	case !r.DueAt.IsZero():
		sentences = append(sentences, fmt.Sprintf("It is looked at again by %s.", t.when(r.DueAt)))
	}
	if end := t.awaited(); end.After(t.now) {
		then := t.at(end)
		what := string(then.Action)
		if then.Action == lifecycle.ActionKeep {
			what = "it is kept even then"
		}
		sentences = append(sentences, fmt.Sprintf("%s %s: %s, since: %s.", before, t.when(end), what, t.reason(then)))
	}
	return sentences
}

// by says when a sweep looks at the host and does what is next; empty: at once.
func (t *hostExplainer) by() string {
	if due := t.Record.DueAt; due.After(t.now) {
		return " by " + t.when(due)
	}
	return ""
}

// awaited is the deadline of the host as it stands: its threshold, and no sooner
// than the holds of operators let go of it.
func (t *hostExplainer) awaited() time.Time {
	r := t.Record
	end := r.Threshold
	if r.State == lifecycle.StateTerminated {
		return end
	}
	if !r.FleetHeld && r.Hold.After(end) {
		end = r.Hold
	}
	if h := t.FleetHold; h != nil && h.Until.After(end) {
		end = h.Until
	}
	return end
}

// at is what would be decided at another time, if its agent and all others went on saying what they say now.
func (t *hostExplainer) at(then time.Time) lifecycle.Decision {
	facts := t.Facts
	if p := facts.Report; p != nil && t.now.Sub(p.HeartbeatAt) < t.env.Hosts.Policy(facts.Record.Pool).Silence {
		later := *p
		later.HeartbeatAt = then
		facts.Report = &later
	}
	return t.env.Hosts.Decide(facts, then)
}

// when is a time with how far away it is.
func (t *hostExplainer) when(at time.Time) string {
	if d := at.Sub(t.now); d > 0 {
		return fmt.Sprintf("%s (in %s)", hosts.ClockTime(at), d.Round(time.Second))
	}
	return fmt.Sprintf("%s (%s ago)", hosts.ClockTime(at), t.now.Sub(at).Truncate(time.Second))
}

// said is what each sweep last said of a host on its current assignment, if it stays as it is,
// for another reason than but.
func said(history []lifecycle.Event, r lifecycle.Record, but lifecycle.ReasonCode) (sentences []string) {
	heard := map[string]bool{}
	for _, e := range slices.Backward(history) {
		if e.InstanceID != r.InstanceID || e.Assignment != r.Assignment || e.Sweep == "" || heard[e.Sweep] {
			continue
		}
		heard[e.Sweep] = true
		if e.Action == lifecycle.ActionKeep && e.Code != but {
			sentences = append(sentences, fmt.Sprintf("The %s sweep said at %s, and nothing else since: keep %s, %s.", e.Sweep, hosts.ClockTime(e.At), e.InstanceID, e.Reason))
		}
	}
	slices.Reverse(sentences)
	return sentences
}

// holdSentence describes the fleet's hold while it is in force.
func holdSentence(h fleethold.Hold, now time.Time) string {
	if !h.InForce(now) {
		return ""
	}
	return fmt.Sprintf("No host is ended: %s.", h)
}

// compact leaves out what is empty.
func compact(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}
