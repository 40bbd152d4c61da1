package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// WarmPolicy is how many hosts that no run has used a pool keeps ready for the next run of any repository.
type WarmPolicy struct {
	// MinimumIdle hosts wait at any time, by Key of the configuration; empty: minimum_idle.
	MinimumIdle int
	Key         string
	// Schedules may want more at their times; the first that holds counts.
	Schedules []Period
	// Lead is how long before it is wanted a host is launched, and how long before
	// the end of its time it is replaced. Shorter than a host takes to boot, with the
	// interval of the sweep, leaves times without hosts.
	Lead time.Duration
	// Maximum is how many hosts the pool may have, whatever they do; nil: any number.
	Maximum *int
}

// WarmHost is a fresh host of a pool that lives.
type WarmHost struct {
	InstanceID string
	// Coming: it is not clean and prepared yet. Else it may be claimed until EndsAt.
	Coming bool
	EndsAt time.Time
	// No run gets a host that is busy, held, retiring or interrupted.
	Busy, Held, Retiring, Interrupted bool
	// Kept: only a hold on the whole fleet keeps it, and it ends after that. No run gets it either.
	Kept bool
	// Unfit says why it is not what the pool launches now, as of another class; empty: it is.
	Unfit string
}

// away: the host is there, and of no use to the next run.
func (h WarmHost) away() bool { return h.Busy || h.Held || h.Retiring || h.Interrupted }

// WarmFacts are what is known of a pool.
type WarmFacts struct {
	// Hosts are its fresh hosts, Others the number of all its others that live.
	Hosts  []WarmHost
	Others int
	// NotBefore: hosts that were launched did not come up, and until then none is
	// launched; zero: at any time.
	NotBefore time.Time
	// Paused is why and until when none is launched; none: nothing forbids it.
	Paused lifecycle.Reason
	// Held says of the hold on the whole fleet, while it is in force, that nothing
	// may be ended; empty: there is none.
	Held string
}

// beyond reports whether the fleet's hold is all that keeps a host a lead from now.
func (f WarmFacts) beyond(h WarmHost, ready time.Time) bool {
	return f.Held != "" && (h.Kept || !h.Coming && !h.EndsAt.After(ready))
}

// WarmDecision is what to do with a pool's fresh hosts, and why.
type WarmDecision struct {
	// Launch is how many more to launch, Retire which to end, in that order.
	Launch int
	Retire []string
	// Wanted is how many are to be ready now, or a lead from now if that is more;
	// Idle how many can be claimed then still, Coming how many are on the way, and
	// Kept how many the hold on the whole fleet keeps beyond their time.
	Wanted, Idle, Coming, Kept int
	// Full: hosts are missing, and the pool's maximum leaves room for fewer.
	Full bool
	// Code is why, and Reason says it in a sentence for people.
	Code   lifecycle.ReasonCode
	Reason string
}

// TopUp says how many fresh hosts to launch ahead of need, or which to end since neither now nor a lead from
// now wants them. It counts what can be claimed and will be still a lead from now, and what is coming; what
// is launched stays within the pool's maximum. While the fleet is held nothing goes, and what stays beyond
// its time counts too: else its replacements would pile up for as long.
func TopUp(p WarmPolicy, f WarmFacts, now time.Time) WarmDecision {
	wanted, of := p.Wanted(now)
	d := WarmDecision{Wanted: wanted}
	var idle, coming []WarmHost
	for _, h := range f.Hosts {
		switch {
		case h.away(), h.Kept && f.Held == "":
		case h.Unfit != "" && f.Held != "":
		case h.Unfit != "":
			d.Retire = append(d.Retire, h.InstanceID)
		case f.beyond(h, now.Add(p.Lead)):
			d.Kept++
		case h.Coming:
			coming = append(coming, h)
		case h.EndsAt.After(now.Add(p.Lead)):
			idle = append(idle, h)
		}
	}
	slices.Sort(d.Retire)
	d.Idle, d.Coming = len(idle), len(coming)
	d.counted(of)
	switch missing := wanted - d.Idle - d.Coming - d.Kept; {
	case missing > 0:
		d.launch(p, f, missing, now)
	case missing < 0 && f.Held != "":
		d.because(lifecycle.ReasonFleetHeld, ": %d too many, and %s", -missing, f.Held)
	case missing < 0:
		d.Retire = append(d.Retire, surplus(idle, coming, -missing)...)
		d.because(lifecycle.ReasonWarmSurplus, ": %d too many", -missing)
	}
	return d
}

// Wanted is how many hosts are wanted now or a lead from now, whichever is more, and by what.
func (p WarmPolicy) Wanted(now time.Time) (int, string) {
	most, of := p.MinimumIdle, cmp.Or(p.Key, "minimum_idle")
	for _, at := range []time.Time{now, now.Add(p.Lead)} {
		if s, ok := Now(p.Schedules, at); ok && s.IdleCount > most {
			most, of = s.IdleCount, fmt.Sprintf("schedule %s", s.Cron)
			if at.After(now) {
				of += fmt.Sprintf(" in %s", p.Lead)
			}
		}
	}
	return most, of
}

// launch is as many as are missing and there is room for.
func (d *WarmDecision) launch(p WarmPolicy, f WarmFacts, missing int, now time.Time) {
	if now.Before(f.NotBefore) {
		d.because(lifecycle.ReasonLaunchesFailed, ": %d missing, and none is launched before %s, since the last ones did not come up",
			missing, f.NotBefore.UTC().Format(time.RFC3339))
		return
	}
	d.because(lifecycle.ReasonWarmMissing, ": %d missing", missing)
	if f.Paused.Given() {
		d.because(f.Paused.Code, ", and none is launched: %s", f.Paused.Text)
		return
	}
	d.Launch = missing
	if p.Maximum == nil {
		return
	}
	live := len(f.Hosts) + f.Others
	if room := max(*p.Maximum-live, 0); room < missing {
		d.Launch, d.Full = room, true
		d.because(lifecycle.ReasonPoolFull, ", and room for %d: the pool has %d of at most %s", room, live, plural.Of(*p.Maximum, "host", "hosts"))
	}
}

// surplus are n of the hosts: first those that cannot be claimed yet, then those whose time ends first.
func surplus(idle, coming []WarmHost, n int) []string {
	byEnd := func(a, b WarmHost) int {
		return cmp.Or(a.EndsAt.Compare(b.EndsAt), cmp.Compare(a.InstanceID, b.InstanceID))
	}
	slices.SortFunc(coming, func(a, b WarmHost) int { return cmp.Compare(b.InstanceID, a.InstanceID) })
	slices.SortFunc(idle, byEnd)
	var ids []string
	for _, h := range slices.Concat(coming, idle)[:n] {
		ids = append(ids, h.InstanceID)
	}
	return ids
}
