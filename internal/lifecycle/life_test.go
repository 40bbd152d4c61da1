package lifecycle_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
)

// life is one host with all the facts that Decide gets about it, driven by the
// events of a script.
type life struct {
	now    time.Time
	facts  lifecycle.Facts
	policy lifecycle.Policy
	said   []string
}

func newLife() *life {
	l := &life{now: start, policy: lifecycle.DefaultPolicy()}
	l.policy.MaxRuntime = 6 * time.Hour
	l.facts.StoreUpSince, l.facts.StoreReadableSince = start, start
	return l
}

func (l *life) say(format string, args ...any) { l.said = append(l.said, fmt.Sprintf(format, args...)) }

// do carries out one event, such as "wait 15s" or "report UD_REG_OK busy".
func (l *life) do(event string) error {
	words := strings.Fields(event)
	name, args := words[0], words[1:]
	switch name {
	case "launch":
		return l.launch(args)
	case "claim":
		return l.claim(args)
	case "report":
		return l.report(args)
	case "request":
		return l.request(args)
	case "cloud":
		return l.cloud(args)
	case "policy":
		return l.setPolicy(args)
	case "wait":
		return l.wait(args)
	case "sweep":
		return l.sweep()
	case "order":
		return l.apply(lifecycle.Decision{Action: lifecycle.ActionTerminate, Reason: "ordered by an operator"})
	case "hold":
		d, err := time.ParseDuration(args[0])
		l.facts.Record.Hold = l.now.Add(d)
		return err
	case "store":
		l.facts.StoreReadableSince = map[string]time.Time{"lost": {}, "back": l.now}[args[0]]
	case "mass":
		l.facts.MassSilence = args[0] == "silence"
	case "runner":
		l.facts.Runner = &lifecycle.Runner{Gone: args[0] == "gone"}
	case "labels":
		l.facts.LabelsSet, l.facts.Runner = args[0] == "set", &lifecycle.Runner{ID: runnerID}
	case "excess":
		l.facts.Excess = true
	case "unreadable":
		l.facts.Report = nil
	case "template":
		l.facts.Template = args[0]
	case "announce":
		l.facts.Record.InterruptionAt = l.now.Add(notice.Lead)
	case "retire":
		l.facts.Record.Retiring, l.facts.Record.RetiringReason = true, strings.Join(args, " ")
	default:
		return fmt.Errorf("no event %q", name)
	}
	return nil
}

func (l *life) launch(args []string) error {
	q := l.newRequest("101")
	reg := &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token, ExpiresAt: l.now.Add(time.Hour)}
	for _, arg := range args {
		q.Unattended = q.Unattended || arg == "unattended"
		if scope, found := strings.CutPrefix(arg, "jobs-of="); found {
			q.RunID, q.RequestID, q.Spec.JobsOf, reg.Kind = "job:7", "turn-small-1", scope, lifecycle.RegistrationJIT
		}
	}
	m := lifecycle.Machine{InstanceID: hostKey, HostKey: hostKey,
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: "c6i.large",
			CPU: 2, MemoryMiB: 4096,
		},
		LaunchedAt: l.now, TemplateVersion: l.facts.Template}
	l.facts.Request = q
	l.facts.Record = lifecycle.Launched(m, *q, reg, l.now, l.policy)
	l.show()
	return nil
}

func (l *life) newRequest(run string) *lifecycle.Request {
	return &lifecycle.Request{
		Repository: "acme/web", RunID: run, RequestID: "q" + run,
		Spec:  lifecycle.Spec{RunAttempt: 1, Pool: "default", MaxRuntime: l.policy.MaxRuntime},
		Taken: []lifecycle.Taken{{HostKey: hostKey, InstanceID: hostKey}},
	}
}

// claim takes the host for a run, if the condition of a claim made from its
// message holds: "claim 102", or "claim 102 assignment=2" with a stale message.
func (l *life) claim(args []string) error {
	m := l.facts.Record.Message()
	for _, arg := range args[1:] {
		n, err := strconv.ParseInt(strings.TrimPrefix(arg, "assignment="), 10, 64)
		if err != nil {
			return err
		}
		m.Assignment = n
	}
	q := l.newRequest(args[0])
	c := lifecycle.Claim{
		HostKey: m.HostKey, Assignment: m.Assignment, TrustKey: "acme/web", Now: l.now, Margin: l.policy.ClaimMargin,
		RunID: q.RunID, RunAttempt: 1, Repository: q.Repository, RequestID: q.RequestID, MaxRuntime: q.Spec.MaxRuntime,
		Registration: &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token, ExpiresAt: l.now.Add(time.Hour)},
		Threshold:    l.now.Add(l.policy.ClaimTimeout),
	}
	if !c.Holds(l.facts.Record) {
		l.say("claim refused")
		return nil
	}
	r, err := l.facts.Record.Claimed(c)
	if err != nil {
		return err
	}
	l.facts.Record, l.facts.Request = r, q
	l.facts.LabelsSet, l.facts.Runner, l.facts.Excess = false, nil, false
	l.show()
	return nil
}

// report is what the agent writes now: a signal, and any of busy, interrupted,
// cause=, jobs=, detail= (one word) and assignment= (default: the record's).
// "report" alone keeps the last signal, as a heartbeat does.
func (l *life) report(args []string) error {
	r := lifecycle.Report{HostKey: hostKey, HeartbeatAt: l.now, Assignment: l.facts.Record.Assignment}
	if old := l.facts.Report; old != nil {
		r.InterruptionAt = old.InterruptionAt
		if old.Assignment == r.Assignment {
			r.Signal, r.Cause, r.Jobs = old.Signal, old.Cause, old.Jobs
		}
	}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "busy":
			r.Busy = true
		case "interrupted":
			r.InterruptionAt = l.now.Add(2 * time.Minute)
		case "cause":
			r.Cause = lifecycle.Cause(value)
		case "detail":
			r.Detail = value
		case "jobs", "assignment":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			if key == "jobs" {
				r.Jobs = n
			} else {
				r.Assignment = int64(n)
			}
		default:
			r.Signal, r.Cause = lifecycle.Signal(key), ""
		}
	}
	l.facts.Report = &r
	return r.Check(l.now)
}

func (l *life) request(args []string) error {
	q := *l.facts.Request
	switch args[0] {
	case "released":
		q.ReleasedAt = l.now
	case "ready":
		q.Outcome = lifecycle.OutcomeReady
	case "replaces":
		q.Spec.ReplaceInterrupted = true
	case "short":
		q.Outcome, q.Taken = lifecycle.OutcomeShort, nil
	default:
		return fmt.Errorf("no request state %q", args[0])
	}
	l.facts.Request = &q
	return nil
}
