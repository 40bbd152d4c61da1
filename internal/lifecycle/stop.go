package lifecycle

import "time"

// Stop is what a record has of a host whose machine is stopped: it keeps its disk, costs only that, and is started before
// anything is launched. It is set from the order to stop the machine until a run that got the host has it ready, or the host ends.
type Stop struct {
	// At is when controld decided to stop the machine.
	At time.Time `json:"at"`
	// StoppedAt is when the cloud first showed it stopped; zero: it may still run, and is not started.
	StoppedAt time.Time `json:"stoppedAt,omitzero"`
	// StartAt is when a request took the host, which is claimed while its machine starts; zero: none has.
	StartAt time.Time `json:"startAt,omitzero"`
	// RetryAt is until when it is not started again, since the cloud had no capacity for it.
	RetryAt time.Time `json:"retryAt,omitzero"`
}

const (
	// stopTimeout is how long a machine may take to stop. EC2 takes about a minute, and forces a stop after some minutes.
	stopTimeout = 10 * time.Minute
	// hibernateAfter is how long after its launch a machine can be hibernated. EC2 refuses earlier ones, for about two minutes, until its agent on the host
	// has made room on the root volume ("Hibernate your Amazon EC2 instance", Troubleshooting).
	hibernateAfter = 2 * time.Minute
	// hibernateRate is how many MiB a second of its memory a machine writes at least: the 125 MiB/s of the slowest root volume, and some for all else.
	hibernateRate = 100
	// stoppedLook is how often a stopped machine is looked for: one that EC2 has ended must not be counted on.
	stoppedLook = time.Hour
	// startLook is when the due sweep looks at a host whose machine its request was to start.
	startLook = 20 * time.Second
	// startRetry is how long a host stays stopped after the cloud had no capacity for it.
	startRetry = 5 * time.Minute
)

// Stopped reports whether the host is clean, and its machine is stopped or about to be.
func (r Record) Stopped() bool { return r.State == StateIdle && r.Stop != nil }

// Starting reports whether a request has the host, whose machine was stopped and starts for it.
func (r Record) Starting() bool { return r.State == StateClaimed && r.Stop != nil }

// Startable reports whether a request with the right trust key may have the host started.
func (r Record) Startable(now time.Time, margin time.Duration) bool {
	return r.Stopped() && !r.Stop.StoppedAt.IsZero() && !now.Before(r.Stop.RetryAt) && r.mayBeTaken(now, margin)
}

// MayStop reports whether the pool has hosts stopped: those that have waited for their idle time, or fresh ones.
func (p Policy) MayStop() bool { return p.StoppedMaximum > 0 || p.StopsFresh }

// StopsNext reports whether the host was launched to be stopped and is prepared, so that no run gets it before.
func (r Record) StopsNext() bool { return r.Pooled() && r.ToStop && r.Unused() && !r.Renewed() }

// Started is the record of a stopped host after a request took it. The write is conditional on the record's version, so that of two requests
// one has the host, and its machine is started after that. A fresh host is bound to the run's trust key, as by a claim.
func (r Record) Started(c Claim) (Record, error) {
	if !r.Startable(c.Now, c.Margin) || r.TrustKey != c.TrustKey {
		return r, &TransitionError{HostKey: r.HostKey, From: r.Condition(), Action: ActionStart}
	}
	n, err := r.begin(ActionStart, c.Now, Reason{})
	if err != nil {
		return r, err
	}
	if n, err = n.taken(c); err != nil {
		return r, err
	}
	s := *r.Stop
	s.StartAt, s.RetryAt = c.Now, time.Time{}
	n.Meter.Start(c.Now)
	n.Stop, n.DueAt = &s, earliest(n.Threshold, c.Now.Add(startLook))
	n.Reason, n.ReasonCode = "started for "+n.purpose(), CodeOf(ActionStart)
	return n, nil
}

// stop has the machine of a pooled host stopped.
func (r *Record) stop(now time.Time, p Policy) {
	r.RestingAt, r.Stop = time.Time{}, &Stop{At: now}
	r.Threshold = earliest(now.Add(p.StoppedTime), r.agesAt(p))
	r.DueAt = now
}

// stopAgain takes a host back from the run for which its machine was to be started. The run has not used it, and is charged nothing.
func (r *Record) stopAgain(now time.Time, d Decision, p Policy) {
	s := Stop{At: now}
	if d.Code == ReasonNoCapacity {
		s.StoppedAt, s.RetryAt = r.Stop.StoppedAt, now.Add(startRetry)
	}
	r.State, r.RunID, r.RequestID, r.PooledAt = StateIdle, "", "", now
	r.unassign(now)
	r.Uses--
	r.RunnerName, r.GitHubRunnerID, r.JobsOf, r.Forks = "", 0, "", false
	r.stop(now, p)
	r.Stop = &s
}

// confirmStop notes that the cloud shows the machine stopped.
func (r *Record) confirmStop(now time.Time, p Policy) {
	s := *r.Stop
	s.StoppedAt = now
	r.Stop, r.DueAt = &s, r.stoppedLookAt(now, p)
	r.Meter.Stop(now)
}

func (r Record) stoppedLookAt(now time.Time, p Policy) time.Time {
	return earliest(earliest(r.Threshold, r.agesAt(p)), now.Add(stoppedLook))
}

// mayStop reports whether a pooled host whose idle time is over is stopped and not ended. EC2 stops no spot machine of ours. A host that
// no run has used is ended, unless it was launched to be stopped, so that what waits for any run is not older than its warm time; and so is
// one that would be of no use to a run when it is started.
func (v *decider) mayStop() bool {
	r := v.Record
	return v.roomToStop() && !r.Held(v.now) && r.UsageClass == UsageOnDemand && r.Standby == nil && r.RunnerName == "" && !r.Restored() &&
		!v.drifted().Given() && v.fresh() && v.signal() == SignalRemoveRegOK
}

// roomToStop reports whether the pool may have the host stopped. Fresh ones were counted when they were launched.
func (v *decider) roomToStop() bool {
	if v.Record.Unused() && !v.Record.Renewed() {
		return v.Record.ToStop && v.p.StopsFresh
	}
	return v.StoppedHosts != nil && *v.StoppedHosts < v.p.StoppedMaximum
}

// stopped decides for a host whose machine is stopped or about to be. That its agent is silent says nothing, and once the cloud shows the
// machine stopped, nor does a job that the last report names: the agent of a host that shuts down may take its host for busy.
func (v *decider) stopped() Decision {
	r, s := v.Record, v.Record.Stop
	halted := v.Cloud != nil && v.Cloud.State == MachineStopped
	switch {
	case v.busy() && !halted && v.now.Before(r.PooledAt.Add(r.maxRuntime(v.p))):
		return keep(v.now.Add(v.p.DrainPoll), busyPooled)
	case r.Retiring:
		return terminate(r.retiring())
	case v.aged().Given():
		return terminate(v.aged())
	case v.drifted().Given():
		return terminate(v.drifted())
	case v.expired():
		return terminate(stoppedTimeout)
	case v.Cloud == nil && !s.StoppedAt.IsZero():
		return keep(r.stoppedLookAt(v.now, v.p), stoppedAwaitingRun)
	case v.Cloud == nil:
		return keep(v.now.Add(v.p.EndPoll), v.stoppingMachine())
	case halted && s.StoppedAt.IsZero():
		return act(ActionConfirmStop, v.machineStopped())
	case halted:
		return keep(r.stoppedLookAt(v.now, v.p), stoppedAwaitingRun)
	case s.StoppedAt.IsZero() && reached(s.At.Add(v.stopTimeout()), v.now):
		return terminate(v.notStopped())
	case v.Cloud.State == MachineStopping, !v.Cloud.Shown(), !v.fresh() && !v.Listened(v.now, v.p.Silence), r.Held(v.now): // a job may run that the record does not know
		return keep(v.now.Add(v.p.EndPoll), v.stoppingMachine())
	}
	d := act(ActionStopMachine, v.stoppingMachine())
	if d.Hibernate = v.hibernates(); d.Hibernate && v.now.Before(r.LaunchedAt.Add(hibernateAfter)) {
		return keep(r.LaunchedAt.Add(hibernateAfter), v.stoppingMachine())
	}
	d.CheckAt = v.now.Add(v.p.EndPoll)
	return d
}

// hibernates reports whether the machine of a host that is to be stopped keeps its memory. No job and no registration in use may be in that: its agent has said just
// now that it is clean in this assignment.
func (v *decider) hibernates() bool {
	r := v.Record
	return v.p.Hibernates && v.Cloud.Hibernates && v.Cloud.State == MachineRunning &&
		v.signal() == SignalRemoveRegOK && v.fresh() && !v.busy() && r.Standby == nil && r.RunnerName == ""
}

// stopTimeout is how long the machine may take to stop. One that hibernates writes its memory first.
func (v *decider) stopTimeout() time.Duration {
	if !v.p.Hibernates {
		return stopTimeout
	}
	return stopTimeout + hibernateAfter + time.Duration(v.Record.MemoryMiB/hibernateRate)*time.Second
}

// booting reports whether the host was stopped and its agent has not spoken since its machine was to start.
func (v *decider) booting() bool {
	return v.Record.Starting() && (v.Report == nil || !v.Report.HeartbeatAt.After(v.Record.Stop.StartAt))
}

// starting decides for a host whose machine starts for the run that took it. One that is not needed any more is stopped again, and so is one
// for which the cloud has no capacity: then the request looks for another host, and launches as if there were none.
func (v *decider) starting() Decision {
	r := v.Record
	switch {
	case v.StartShort != "":
		return act(ActionStop, v.noCapacity())
	case v.unwanted().Given() && !r.Retiring:
		return act(ActionStop, v.unwanted().And(" before its machine had started"))
	case v.expired():
		return terminate(notStarted)
	case v.Cloud != nil && (v.Cloud.State == MachineStopped || v.Cloud.State == MachinePending):
		d := act(ActionStartMachine, v.startingMachine())
		d.CheckAt = earliest(r.Threshold, v.now.Add(v.p.EndPoll))
		return d
	}
	return keep(earliest(r.Threshold, v.now.Add(startLook)), v.startingMachine())
}
