package lifecycle

import (
	"cmp"
	"time"
)

// Standby is the registration with which a pooled host waits for its next run: it has registered ahead of need, and its
// runner listens. GitHub gives it no job, since no job names its label. A claim then only has to set the labels of its run.
type Standby struct {
	// Assignment is the one under which the host registers. Its runner is RunnerName of that.
	Assignment int64 `json:"assignment"`
	// Label is the only label that the runner registers with. It cannot be guessed.
	Label Secret `json:"label,omitempty"`
	// RunnerID is the id of the runner on GitHub. 0: it is not known to listen yet.
	RunnerID int64 `json:"runnerId,omitempty"`
	// URL is the repository or organization that the runner belongs to, until the host is ready. Each has runner ids of its own.
	URL string `json:"url,omitempty"`
	// Discarded: the registration cannot be used, so the host, which was claimed, gets rid of it and registers for its run.
	Discarded bool `json:"discarded,omitempty"`
}

// StandbyMode says how the clean hosts of a pool wait for a run.
type StandbyMode string

// The modes.
const (
	StandbyClean     StandbyMode = "clean"     // without a registration
	StandbyListening StandbyMode = "listening" // registered and listening: see Standby
)

// StandbyModes lists every mode.
var StandbyModes = []StandbyMode{StandbyListening, StandbyClean}

// standbyMaxAge is how old a standby registration may be before it is renewed. GitHub deletes a registration that has not
// been used for 14 days, and one day is far from that even if the host was out of reach for a while.
const standbyMaxAge = 24 * time.Hour

// Hot reports whether the host is pooled and its runner listens, so that a claim has only to set its labels.
func (r Record) Hot() bool { return r.Pooled() && r.Standby != nil && r.Standby.RunnerID != 0 }

// Warming reports whether the host is pooled and becomes hot. It may be claimed, and is ready once it listens and has its labels.
func (r Record) Warming() bool { return r.Pooled() && r.Standby != nil && r.Standby.RunnerID == 0 }

// servesByStandby reports whether the host serves its run by the registration with which it waited for it.
func (r Record) servesByStandby() bool { return r.Standby != nil && !r.Standby.Discarded }

// allows reports whether the record has what an action is about: a registration ahead of need, or rest.
func (r Record) allows(action Action) bool {
	switch action {
	case ActionStandBy:
		return r.Warming()
	case ActionLeaveStandby:
		return r.Standby != nil
	case ActionReregister:
		return r.servesByStandby()
	case ActionRest:
		return r.Standby == nil && !r.Resting()
	case ActionWake:
		return r.Resting()
	case ActionStop:
		return r.Standby == nil && (r.Pooled() || r.Starting())
	}
	return true
}

// mayStandBy reports whether a clean host waits for its next run with a registration. The registration is that of
// the repository it served last, so a host that served none has none.
func (v *decider) mayStandBy() bool {
	r := v.Record
	return v.p.Standby == StandbyListening && !r.Unused() && !r.StandbyFailed && !v.GitHubUnavailable && r.ReasonCode != ReasonVersionRefused
}

// warming decides for a pooled host that registers ahead of need. While GitHub refuses that for a time, as with a rate limit, its agent
// tries again, and the host may be claimed. Until ClaimTimeout it is not given up: then it would stay without a registration until
// its next run.
func (v *decider) warming() Decision {
	r := v.Record
	failed, end := v.signal() == SignalRegFailed, r.PooledAt.Add(v.p.ClaimTimeout)
	switch over := reached(end, v.now); {
	case v.signal() == SignalRegOK && v.fresh():
		return act(ActionStandBy, listening)
	case failed && (over || !v.Report.Cause.Passes()):
		return v.leaveStandby(v.runnerFailed(ReasonStandbyFailed, "its registration ahead of need failed"))
	case over:
		return v.leaveStandby(v.notListening())
	}
	why := registeringAhead
	if failed {
		why = v.failed(ReasonWaitingForRun, "idle: waiting for a run, and its registration ahead of need is tried again")
	}
	return keep(earliest(earliest(r.Threshold, end), v.now.Add(v.p.ReleasePoll)), why)
}

// hot decides for a pooled host that listens. It reports false if its registration needs no decision.
func (v *decider) hot() (Decision, bool) {
	switch {
	case v.signal() == SignalRegFailed:
		return v.leaveStandby(v.runnerFailed(ReasonStandbyFailed, "its runner was lost")), true
	case reached(v.Record.PooledAt.Add(standbyMaxAge), v.now):
		return act(ActionLeaveStandby, renewed), true
	}
	return Decision{}, false
}

func (v *decider) leaveStandby(why Reason) Decision {
	d := act(ActionLeaveStandby, why)
	d.StandbyFailed = true
	return d
}

// claimedHot decides for a host that was claimed while its runner listened, or while it was about to. It is ready as soon as it
// listens and its labels are set: its agent need not have seen the claim, since the job-started hook waits for that. It
// reports false for every other host.
func (v *decider) claimedHot() (Decision, bool) {
	lost := v.runnerGone() || v.signal() == SignalRegFailed
	switch {
	case !v.Record.servesByStandby() || v.silent() || v.unwanted().Given() && !v.busy():
		return Decision{}, false
	case lost && !v.busy():
		return act(ActionReregister, v.registrationLost()), true
	case v.listens() && (v.busy() || !v.expired()):
		d := v.readied(v.labeled())
		d.SetLabels = !v.LabelsSet
		if v.Runner != nil {
			d.RunnerID = v.Runner.ID
		}
		return d, true
	}
	return Decision{}, false
}

// listens reports whether the agent says that the runner listens, under the assignment of its registration or of the claim.
func (v *decider) listens() bool {
	return v.Report != nil && v.fresh() && v.Report.Signal == SignalRegOK &&
		(v.Report.Assignment == v.Record.Assignment || v.Report.Assignment == v.Record.Standby.Assignment)
}

// standBy notes the runner of a host that listens ahead of need.
func (r *Record) standBy(d Decision) {
	s := *r.Standby
	s.RunnerID = d.RunnerID
	r.Standby, r.Registration = &s, nil
	r.DueAt = earliest(r.Threshold, r.PooledAt.Add(standbyMaxAge))
}

// readyStandby forgets what a host that is ready no longer needs of its registration ahead of need.
func (r *Record) readyStandby(d Decision) {
	r.StandbyFailed = false
	if !r.servesByStandby() {
		r.Standby = nil
		return
	}
	s := *r.Standby
	s.Label, s.URL, s.RunnerID = "", "", cmp.Or(s.RunnerID, d.RunnerID)
	r.Standby = &s
}

// NextRunnerName is the name of the runner of a pooled host once it is claimed: that of the runner that
// has registered ahead of need, else a new one.
func (r Record) NextRunnerName() string {
	if r.Standby != nil {
		return r.RunnerName
	}
	return RunnerName(r.Assignment+1, r.InstanceID)
}

// leaveStandby has a host deregister and clean up once more.
func (r *Record) leaveStandby(d Decision, now time.Time, p Policy) {
	r.PooledAt, r.RestingAt = time.Time{}, time.Time{}
	r.unassign(now)
	r.StandbyFailed = d.StandbyFailed
	r.keepImages(p)
	r.startRelease(now, p)
}

// reregister has a claimed host register for its run after all, because the registration that it waited with cannot be used. It is
// a new assignment, so that no signal of the old registration counts.
func (r *Record) reregister(now time.Time, p Policy) {
	r.keepImages(p)
	r.Standby = &Standby{Assignment: r.Standby.Assignment, Discarded: true}
	r.Assignment++
	r.RunnerName = RunnerName(r.Assignment, r.InstanceID)
	r.Threshold = now.Add(p.ClaimTimeout)
	r.DueAt = r.Threshold
}

// keepImages has the next clean-up keep what runs have left in docker. No run leaves the host with it: the host gives up the registration with which it waited
// for one. It has no views of other caches then. A run that has claimed the host is judged when it leaves.
func (r *Record) keepImages(p Policy) {
	if p.DockerCache != "" {
		r.KeepCaches = []string{p.DockerCache}
	}
}
