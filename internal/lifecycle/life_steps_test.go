package lifecycle_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func (l *life) cloud(args []string) error {
	m := lifecycle.Machine{InstanceID: hostKey, HostKey: hostKey, Hardware: shown, State: lifecycle.MachineState(args[0])}
	switch args[0] {
	case "unknown":
		l.facts.Cloud = nil
		return nil
	case "impaired":
		m.State, m.Impaired = lifecycle.MachineRunning, true
	}
	l.facts.Cloud = &m
	return nil
}

func (l *life) setPolicy(args []string) error {
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "reuse":
			l.policy.Reuse = lifecycle.Reuse(value)
		case "uses":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			l.policy.MaxUses = n
		case "age":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			l.policy.MaxAge = d
		case "idle":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			l.policy.IdleTime = d
		case "drift":
			l.policy.Drift = lifecycle.Drift(value)
		case "standby":
			l.policy.Standby = lifecycle.StandbyMode(value)
		case "runtime":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			l.policy.MaxRuntime = d
		default:
			return fmt.Errorf("no policy %q", key)
		}
	}
	return nil
}

// wait lets time pass. With "heard" the agent's heartbeats go on.
func (l *life) wait(args []string) error {
	d, err := time.ParseDuration(args[0])
	l.now = l.now.Add(d)
	if err == nil && len(args) > 1 && args[1] == "heard" {
		r := *l.facts.Report
		r.HeartbeatAt = l.now
		l.facts.Report = &r
	}
	return err
}

// sweep decides and carries out until there is nothing more to write, as a
// sweep does over several looks.
func (l *life) sweep() error {
	l.facts.ReportsReadAt = l.now
	const most = 5 // transitions that facts which stand still can cause
	for range most {
		d := lifecycle.Decide(l.facts, l.now, l.policy)
		if d.SetLabels && (l.facts.Runner == nil || !l.facts.Runner.Gone) {
			l.say("labels are to be set: %s", d.Reason)
			return nil
		}
		if !lifecycle.Allowed(l.facts.Record, d.Action) {
			at := ""
			if !d.CheckAt.IsZero() {
				at = " look=+" + short(d.CheckAt.Sub(l.now))
			}
			l.say("%s%s: %s", d.Action, at, d.Reason)
			return nil
		}
		if err := l.apply(d); err != nil {
			return err
		}
	}
	return fmt.Errorf("not settled after %d transitions", most)
}

// apply carries a decision out, with the token that fleet supplies.
func (l *life) apply(d lifecycle.Decision) error {
	before := l.facts.Record
	if d.StandsBy {
		d.Standby = &lifecycle.Standby{Assignment: before.Assignment, Label: "standby"}
	}
	if d.Action == lifecycle.ActionStandBy {
		d.RunnerID = runnerID
	}
	r, err := lifecycle.Apply(before, d, l.now, l.policy)
	if err != nil {
		return err
	}
	r.Version++
	switch {
	case r.JobsOf != "": // its registration is deleted by its name
	case d.Action == lifecycle.ActionPool && r.Warming(), d.Action == lifecycle.ActionReregister:
		r.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token, ExpiresAt: l.now.Add(time.Hour)}
	case d.Action == lifecycle.ActionLeaveStandby, d.Action == lifecycle.ActionRelease, d.Action == lifecycle.ActionReturn, d.Action == lifecycle.ActionProvideToken:
		r.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationRemove, Secret: token, ExpiresAt: l.now.Add(time.Hour)}
	}
	l.facts.Record = r
	if r.RequestID == "" {
		l.facts.Request = nil
	}
	l.say("%s: %s", d.Action, d.Reason)
	l.show()
	return nil
}

// show prints what matters of the record, times as distances from now.
func (l *life) show() {
	r := l.facts.Record
	words := []string{r.Condition(), fmt.Sprintf("assignment=%d", r.Assignment)}
	add := func(name, value string) {
		if value != "" {
			words = append(words, name+"="+value)
		}
	}
	add("run", r.RunID)
	add("jobs-of", r.JobsOf)
	add("threshold", l.distance(r.Threshold))
	add("due", l.distance(r.DueAt))
	if !r.RuntimeEndsAt.Equal(r.Threshold) {
		add("runtime", l.distance(r.RuntimeEndsAt))
	}
	if r.Registration != nil {
		add("registration", string(r.Registration.Kind))
	}
	add("runner", r.RunnerName)
	if s := r.Standby; s != nil {
		add("standby", fmt.Sprintf("%d", s.Assignment))
		add("runner-id", map[bool]string{true: "", false: strconv.FormatInt(s.RunnerID, 10)}[s.RunnerID == 0])
		add("label", map[bool]string{true: "", false: "secret"}[s.Label == ""])
	}
	if r.ClaimFailures > 0 {
		add("failures", strconv.Itoa(r.ClaimFailures))
	}
	add("expires", l.distance(r.ExpiresAt))
	l.say("  = %s", strings.Join(words, " "))
}

func (l *life) distance(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := t.Sub(l.now)
	if d < 0 {
		return short(d)
	}
	return "+" + short(d)
}
