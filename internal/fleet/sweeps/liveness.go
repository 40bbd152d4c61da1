package sweeps

import (
	"context"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
)

// LivenessSweep reads every report, the one scan there is, and looks at the
// hosts that are silent, interrupted, or have lost their runner.
type LivenessSweep struct {
	op.Stages
	env   *Sweeps
	hosts closer
}

// NewLivenessSweep begins a sweep.
func (sw *Sweeps) NewLivenessSweep() *LivenessSweep {
	s := &LivenessSweep{env: sw, Stages: sw.Ops.Stages("liveness"), hosts: closer{env: sw}}
	s.Next = s.read
	return s
}

func (s *LivenessSweep) read(ctx context.Context, now time.Time) (op.Progress, error) {
	keys, reports, err := s.env.Hosts.AllReports(ctx, now)
	if err != nil {
		s.env.Hosts.LostStore()
		return op.Again, err
	}
	s.env.versions.note(reports)
	s.env.Observer.Busy(busy(reports, now))
	hosts := len(keys)
	suspects := slices.DeleteFunc(keys, func(key string) bool {
		p, told := reports[key]
		return told && !s.env.suspect(p, now)
	})
	if err := s.env.deleteReports(ctx, &s.Events, s.env.expired(suspects, reports, now), reports, now); err != nil {
		return op.Again, err
	}
	quiet := 0
	if len(suspects) > 0 {
		if err := s.hosts.begin(ctx, suspects, reports, now); err != nil {
			return op.Again, err
		}
		ended := 0
		if quiet, ended, err = s.count(ctx, suspects, reports, now); err != nil {
			return op.Again, err
		}
		hosts -= ended
	}
	s.env.Hosts.SawStore(now, s.env.Timing.Liveness, s.massSilence(quiet, hosts, now))
	if len(s.hosts.loaded) == 0 && len(s.hosts.keys) == 0 {
		return op.Done, nil
	}
	return s.Then(s.host)
}

// count counts the quiet among the suspects, and those that have ended: their reports are not deleted yet, nor are those of hosts whose
// machines stop or boot again.
func (s *LivenessSweep) count(ctx context.Context, suspects []string, reports map[string]lifecycle.Report, now time.Time) (quiet, ended int, err error) {
	ended = len(suspects)
	add := func(r lifecycle.Record) {
		if r.State != lifecycle.StateTerminated && !r.Reboots() {
			ended--
		}
		p, told := reports[r.HostKey]
		if told && r.State != lifecycle.StateTerminated && r.Stop == nil && !p.HeartbeatAt.IsZero() && s.env.quiet(p, now) {
			quiet++
		}
	}
	for _, facts := range s.hosts.loaded {
		add(facts.Record)
	}
	if len(s.hosts.keys) > 0 {
		err = s.env.recordsOf(ctx, s.hosts.keys, add)
	}
	return quiet, ended, err
}

// busy counts the hosts with a job whose agents are heard.
func busy(reports map[string]lifecycle.Report, now time.Time) (n int) {
	silence := lifecycle.DefaultPolicy().Silence
	for _, p := range reports {
		if p.Busy && now.Sub(p.HeartbeatAt) < silence {
			n++
		}
	}
	return n
}

// keepReports is how long the report of a host without a record is kept after its last heartbeat. A job may run for 120 hours, and
// until then the report that says so keeps the cloud sweep from ending its machine.
const keepReports = 7 * 24 * time.Hour

// expired are the hosts whose reports are not needed if they have no record: a host that writes after its end leaves one. The
// cloud sweep deletes it earlier, if it finds no machine. A report that cannot be believed has no age, and is left to that sweep.
func (sw *Sweeps) expired(keys []string, reports map[string]lifecycle.Report, now time.Time) (old []string) {
	for _, key := range keys {
		if p := reports[key]; !p.HeartbeatAt.IsZero() && now.Sub(p.HeartbeatAt) >= keepReports {
			old = append(old, key)
		}
	}
	return old
}

// suspect: this report is reason enough to look at its host. So is a report that cannot be believed.
func (sw *Sweeps) suspect(p lifecycle.Report, now time.Time) bool {
	return sw.quiet(p, now) || !p.InterruptionAt.IsZero() || p.Signal == lifecycle.SignalRegFailed || p.Signal == lifecycle.SignalFailed ||
		!p.RebalanceAt.IsZero() && p.Signal == lifecycle.SignalRemoveRegOK // one that a run is on is looked at when that is over
}

// quiet: the host counts towards a mass of silent ones, by the shortest silence of any pool.
func (sw *Sweeps) quiet(p lifecycle.Report, now time.Time) bool {
	limit := lifecycle.DefaultPolicy().Silence
	for _, pool := range sw.Pools {
		limit = min(limit, pool.Policy.Silence)
	}
	return now.Sub(p.HeartbeatAt) >= silence.Quiet(limit)
}

// massSilence reports whether so many living hosts are quiet that the fault is more likely ours than theirs. Every
// decision of this replica goes by it until the next sweep: see lifecycle/silence.
func (s *LivenessSweep) massSilence(quiet, living int, now time.Time) bool {
	mass := silence.Mass(quiet, living)
	if !mass {
		quiet = 0
	}
	s.env.show(silenceGuard, &s.Events, quiet, living, now)
	return mass
}

func (s *LivenessSweep) host(ctx context.Context, now time.Time) (op.Progress, error) {
	facts, err := s.hosts.next(ctx, now)
	if err != nil {
		return op.Again, err
	}
	if facts == nil {
		return op.Done, nil
	}
	if told := facts.Report; told != nil && !told.InterruptionAt.IsZero() {
		if err := s.env.Quota.CountInterruption(ctx, facts.Record, now); !s.Past(ctx, err) {
			return op.Again, err
		}
	}
	if _, _, err := s.env.Hosts.ReconcileSwept(ctx, &s.Events, *facts, now); !s.Past(ctx, err) {
		return op.Again, err
	}
	s.hosts.drop()
	return op.Again, nil
}
