package sweeps

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// ofOldRole are the hosts whose key is not the one that a machine launched now would get: the
// role of the hosts was created again, and the credentials of the old one do not last.
func (sw *Sweeps) ofOldRole(machines []lifecycle.Machine, records map[string]lifecycle.Record) []hosts.Retirement {
	var old []hosts.Retirement
	for _, m := range machines {
		r, ok := records[m.HostKey]
		if ok && m.HostKey != sw.HostKey(m.InstanceID) && !r.Retiring && r.State != lifecycle.StateTerminated {
			old = append(old, hosts.Retirement{Record: r, Why: lifecycle.Because(lifecycle.ReasonRetiring, "its role was created again")})
		}
	}
	return old
}

// driftedPart: of the idle hosts of a pool one sweep retires at most every fourth for drift, and one at
// least. All at once would make the next runs wait for cold starts; so a pool is renewed within a few sweeps
// while runs go on being given the rest.
const driftedPart = 4

// mayDrift reports whether the host is idle and of a launch template whose changes its pool goes by.
func (sw *Sweeps) mayDrift(r lifecycle.Record) bool {
	return (r.Pooled() || r.Stopped()) && r.TemplateVersion != "" && sw.Hosts.Policy(r.Pool).Drift != lifecycle.DriftIgnore
}

// ofOldTemplate are those of the hosts that may drift to be retired since their pool's launch template has changed, those first that
// have been idle the longest. It asks once for each pool that has hosts of a template.
func (sw *Sweeps) ofOldTemplate(ctx context.Context, records []lifecycle.Record, now time.Time) []hosts.Retirement {
	idle := map[string][]lifecycle.Record{}
	for _, r := range records {
		idle[r.Pool] = append(idle[r.Pool], r)
	}
	var old []hosts.Retirement
	for _, pool := range slices.Sorted(maps.Keys(idle)) {
		version, err := sw.Hosts.TemplateVersion(ctx, pool)
		if err != nil {
			sw.Log.Warn("launch template not looked at; its hosts stay", logkey.Pool, pool, logkey.Error, err)
			continue
		}
		most := max(1, len(idle[pool])/driftedPart)
		drifted := slices.DeleteFunc(idle[pool], func(r lifecycle.Record) bool { return r.Retiring || r.Held(now) || !r.Outdated(version) })
		slices.SortFunc(drifted, func(a, b lifecycle.Record) int {
			return cmp.Or(a.PooledAt.Compare(b.PooledAt), cmp.Compare(a.HostKey, b.HostKey))
		})
		for _, r := range drifted[:min(most, len(drifted))] {
			old = append(old, hosts.Retirement{Record: r, Why: lifecycle.Because(lifecycle.ReasonTemplateDrift, "%s", r.Drifted(version))})
		}
	}
	return old
}

// retire marks the next of the hosts to be retired: no further run gets it, and it leaves when
// it is next idle. A host that changed in between is left to the next sweep.
func (s *CloudSweep) retire(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.retiring) == 0 {
		return s.Then(s.host)
	}
	next := s.retiring[0]
	s.Events.RecordDecision(next.Record, next.Why.Decision(lifecycle.ActionRetire))
	if !s.Events.Dry {
		if err := s.env.Hosts.Retire(ctx, &s.Events, next, now); !errors.Is(err, lifecycle.ErrConflict) && !s.Past(ctx, err) {
			return op.Again, err
		}
	}
	s.retiring = s.retiring[1:]
	return op.Again, nil
}
