package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// massSilence: when more than a tenth of the hosts, and at least three, are
// silent at once, the fault is more likely ours than theirs.
const (
	massSilenceAtLeast = 3
	massSilencePart    = 10
)

// LivenessSweep reads every report, the one scan there is, and looks at the
// hosts that are silent, interrupted, or have lost their runner.
type LivenessSweep struct {
	op.Stages
	f     *Fleet
	hosts []lifecycle.Facts
}

// NewLivenessSweep begins a sweep.
func (f *Fleet) NewLivenessSweep() *LivenessSweep {
	s := &LivenessSweep{f: f, Stages: f.ops.Stages("liveness")}
	s.Next = s.read
	return s
}

func (s *LivenessSweep) read(ctx context.Context, now time.Time) (op.Progress, error) {
	keys, reports, err := s.f.allReports(ctx, now)
	if err != nil {
		s.f.watch.lostStore()
		return op.Again, err
	}
	s.f.watch.sawStore(now, s.f.timing.Liveness)
	s.f.versions.note(reports)
	hosts := len(keys)
	suspects := slices.DeleteFunc(keys, func(key string) bool {
		p, told := reports[key]
		return told && !s.f.suspect(p, now)
	})
	if len(suspects) == 0 {
		return op.Done, nil
	}
	if s.hosts, err = s.f.inspect(ctx, suspects, reports, now); err != nil {
		return op.Again, err
	}
	s.markMassSilence(hosts, now)
	s.Next = s.host
	return op.Again, nil
}

// suspect: this report is reason enough to look at its host. So is one of which
// nothing can be believed.
func (f *Fleet) suspect(p lifecycle.Report, now time.Time) bool {
	return f.quiet(p, now) || !p.InterruptionAt.IsZero() || p.Signal == lifecycle.SignalRegFailed || p.Signal == lifecycle.SignalFailed ||
		!p.RebalanceAt.IsZero() && p.Signal == lifecycle.SignalRemoveRegOK // one that a run is on is looked at when that is over
}

// quiet: nothing was heard of the host for the shortest silence of any pool,
// or nothing that counts.
func (f *Fleet) quiet(p lifecycle.Report, now time.Time) bool {
	silence := lifecycle.DefaultPolicy().Silence
	for _, pool := range f.pools {
		silence = min(silence, pool.Policy.Silence)
	}
	return now.Sub(p.HeartbeatAt) >= silence
}

// inspect reads all that is known about hosts, the cloud's word included. It
// asks the cloud first and the store second, so that what is new to one of
// them is not taken for lost.
func (f *Fleet) inspect(ctx context.Context, keys []string, reports map[string]lifecycle.Report, now time.Time) ([]lifecycle.Facts, error) {
	records, err := f.store.Instances(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read hosts: %w", err)
	}
	clouds, err := f.describe(ctx, records, now)
	if err != nil {
		f.log.Warn("EC2 does not answer; deciding without it", "error", err)
		clouds = nil
	}
	if records, err = f.store.Instances(ctx, keys); err != nil {
		return nil, fmt.Errorf("read hosts: %w", err)
	}
	requests := map[string]*lifecycle.Request{}
	facts := make([]lifecycle.Facts, 0, len(records))
	for _, r := range records {
		if r.State == lifecycle.StateTerminated {
			continue // the due sweep's
		}
		fact := ended(r, clouds)
		if report, ok := reports[r.HostKey]; ok {
			fact.Report = &report
		}
		if fact.Request, err = f.requestKnown(ctx, r, requests); err != nil {
			return nil, err
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// markMassSilence tells every decision of this sweep when too many are silent.
func (s *LivenessSweep) markMassSilence(hosts int, now time.Time) {
	silent := 0
	for _, facts := range s.hosts {
		if p := facts.Report; p != nil && !p.HeartbeatAt.IsZero() && s.f.quiet(*p, now) {
			silent++
		}
	}
	if silent < massSilenceAtLeast || silent*massSilencePart <= hosts {
		return
	}
	s.f.log.Error("too many hosts fell silent at once; none is ended for it", "silent", silent, "hosts", hosts)
	for i := range s.hosts {
		s.hosts[i].MassSilence = true
	}
}

func (s *LivenessSweep) host(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.hosts) == 0 {
		return op.Done, nil
	}
	if told := s.hosts[0].Report; told != nil && !told.InterruptionAt.IsZero() {
		if err := s.f.heardInterruption(ctx, s.hosts[0].Record, now); !s.Past(ctx, err) {
			return op.Again, err
		}
	}
	if _, _, err := s.f.bring(ctx, &s.Events, s.hosts[0], now); !s.Past(ctx, err) {
		return op.Again, err
	}
	s.hosts = s.hosts[1:]
	return op.Again, nil
}
