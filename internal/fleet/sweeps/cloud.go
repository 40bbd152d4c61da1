package sweeps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/lifecycle/restored"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// CloudSweep compares the cloud with the store, the cloud first: machines with
// our tag and no record are ended, hosts whose machine is gone are too. What
// is younger than the grace period, lacks our tag or was not launched by us is never touched. If many
// machines have no record, the records are lost and not the machines: none of them is ended.
type CloudSweep struct {
	op.Stages
	env *Sweeps

	machines []lifecycle.Machine
	leaked   []leaked
	retiring []hosts.Retirement
	hosts    closer
	// limits are those whose accounts are looked through.
	limits []policy.Limit
}

// leaked is a machine without an owner, and why.
type leaked struct {
	lifecycle.Machine
	why        string
	unrecorded bool // it has no record
}

// NewCloudSweep begins a sweep.
func (sw *Sweeps) NewCloudSweep() *CloudSweep {
	s := &CloudSweep{env: sw, Stages: sw.Ops.Stages("cloud"), hosts: closer{env: sw}}
	s.Next = s.listMachines
	return s
}

func (s *CloudSweep) listMachines(ctx context.Context, _ time.Time) (op.Progress, error) {
	machines, err := s.env.Hosts.Machines(ctx)
	s.machines = machines
	if err == nil {
		s.Next = s.compare
	}
	return op.Again, err
}

// compare finds machines without a record, and hosts without a machine.
func (s *CloudSweep) compare(ctx context.Context, now time.Time) (op.Progress, error) {
	known := map[string]bool{}
	for _, m := range s.machines {
		known[m.HostKey] = true
	}
	reporting, reports, err := s.env.Hosts.AllReports(ctx, now)
	if err != nil {
		return op.Again, err
	}
	found, err := s.lookUp(ctx, reports, now)
	if err != nil {
		return op.Again, err
	}
	s.whileManyAreUnrecorded(now, len(found.older))
	s.whileJobsRun(reports, now)
	s.limits = s.env.Quota.ToAudit(s.machines, found.repositories, s.env.Repositories)
	s.retiring = append(found.ofOldRole, s.env.ofOldTemplate(ctx, found.idle, now)...)
	if err := s.whileHeld(ctx, now); err != nil {
		return op.Again, err
	}
	for _, m := range s.leaked {
		s.Events.RecordMachine(m.InstanceID, lifecycle.Decision{Action: lifecycle.ActionEndMachine, Code: lifecycle.ReasonNoRecord, Reason: m.why})
	}
	lost := slices.DeleteFunc(reporting, func(key string) bool { return known[key] })
	return s.look(ctx, lost, found.older, reports, now)
}

// found is what the records of the machines say, so far as it is needed once all were read.
type found struct {
	// older are the keys of hosts with older records.
	older     []string
	ofOldRole []hosts.Retirement
	// idle are the hosts that a newer template may retire, and repositories those that hosts are of, in the order of the hosts.
	idle         []lifecycle.Record
	repositories []string
}

// lookUp reads the records of the machines, so many at once, and finds the machines without an owner.
func (s *CloudSweep) lookUp(ctx context.Context, reports map[string]lifecycle.Report, now time.Time) (f found, err error) {
	s.leaked = nil // of an earlier try
	seen := map[string]bool{"": true}
	for machines := s.machines; ; {
		some := machines[:min(len(machines), closerAtOnce)]
		keys := make([]string, 0, len(some))
		for _, m := range some {
			keys = append(keys, m.HostKey)
		}
		records, err := s.env.Store.Instances(ctx, keys)
		if err != nil {
			return f, fmt.Errorf("read hosts: %w", err)
		}
		byKey := make(map[string]lifecycle.Record, len(records))
		for _, r := range records {
			byKey[r.HostKey] = r
			if !seen[r.Repository] {
				seen[r.Repository] = true
				f.repositories = append(f.repositories, r.Repository)
			}
			if s.env.mayDrift(r) {
				f.idle = append(f.idle, r)
			}
		}
		if err := s.findLeaked(ctx, some, byKey, now); err != nil {
			return f, err
		}
		f.older = append(f.older, ofOlderRecords(records, reports)...)
		f.ofOldRole = append(f.ofOldRole, s.env.ofOldRole(some, byKey)...)
		if machines = machines[len(some):]; len(machines) == 0 {
			return f, nil
		}
	}
}

// findLeaked finds those of the machines that have no owner.
func (s *CloudSweep) findLeaked(ctx context.Context, machines []lifecycle.Machine, records map[string]lifecycle.Record, now time.Time) error {
	for _, m := range machines {
		why, err := s.env.leak(ctx, m, records, now)
		if !s.Past(ctx, err) {
			return err
		}
		if why != "" {
			_, recorded := records[m.HostKey]
			s.leaked = append(s.leaked, leaked{m, why, !recorded})
		}
	}
	return nil
}

// ofOlderRecords are the hosts whose records are older states, which were restored: they are marked so, or their agents report
// for a later assignment. The reports were read before the records.
func ofOlderRecords(records []lifecycle.Record, reports map[string]lifecycle.Report) (keys []string) {
	for _, r := range records {
		older := r.Restored() || restored.Older(r.Assignment, reports[r.HostKey].Newest())
		if older && r.State != lifecycle.StateTerminated {
			keys = append(keys, r.HostKey)
		}
	}
	return keys
}

// whileManyAreUnrecorded keeps the machines without a record if they are a mass: after the tables were lost, or an
// older state of them was restored, jobs run on these machines. Hosts whose records are older states count too, since
// what was launched later has none. They are kept until their records are back, or an operator ends them in EC2. The count is
// of what the sweep has read, so each replica comes to the same result. Machines that the sweep does not judge are no part of
// it: others' with a copy of our tag, and new ones, which a burst may bring by the hundred.
func (s *CloudSweep) whileManyAreUnrecorded(now time.Time, restored int) {
	lost, all := restored, 0
	for _, m := range s.machines {
		if s.env.judged(m, now) {
			all++
		}
	}
	for _, m := range s.leaked {
		if m.unrecorded {
			lost++
		}
	}
	if !silence.Mass(lost, all) {
		lost = 0
	}
	s.env.show(unrecordedGuard, &s.Events, lost, all, now)
	if lost == 0 {
		return
	}
	s.leaked = slices.DeleteFunc(s.leaked, func(m leaked) bool {
		if m.unrecorded {
			s.Events.RecordMachine(m.InstanceID, lifecycle.Decision{
				Action: lifecycle.ActionKeep, Code: lifecycle.ReasonManyUnrecorded,
				Reason: fmt.Sprintf("%d of %d machines have no record or a restored one, so none is ended for that; else it would be ended: %s", lost, all, m.why),
			})
		}
		return m.unrecorded
	})
}

// whileJobsRun keeps the machines without a record on which a job runs, as their agents said last, silent or not, and those whose
// agents had no time to say so: the reports may have been lost with the records. A machine on which a job runs is kept for as
// long as a job may run, from when it was first seen so. Its agent ends it once the job is over.
func (s *CloudSweep) whileJobsRun(reports map[string]lifecycle.Report, now time.Time) {
	s.env.busySince.Range(func(key, _ any) bool {
		if !reports[key.(string)].Busy {
			s.env.busySince.Delete(key)
		}
		return true
	})
	s.leaked = slices.DeleteFunc(s.leaked, func(m leaked) bool {
		if m.unrecorded && !s.env.Hosts.Listened(m.Pool, now) {
			s.Events.RecordMachine(m.InstanceID, lifecycle.Decision{
				Action: lifecycle.ActionKeep, Code: lifecycle.ReasonNotHeardYet, Reason: "its agent could not report yet; else it would be ended: " + m.why,
			})
			return true
		}
		if !m.unrecorded || !reports[m.HostKey].Busy {
			return false
		}
		since, _ := s.env.busySince.LoadOrStore(m.HostKey, now)
		if now.Sub(since.(time.Time)) >= s.env.Hosts.Policy(m.Pool).MaxRuntime {
			return false
		}
		s.Events.RecordMachine(m.InstanceID, lifecycle.Decision{
			Action: lifecycle.ActionKeep, Code: lifecycle.ReasonRunningJob, Reason: "running a job; else it would be ended: " + m.why,
		})
		return true
	})
}

// whileHeld keeps what was found in a held fleet: no machine is ended, and no host is marked to be.
func (s *CloudSweep) whileHeld(ctx context.Context, now time.Time) error {
	if len(s.leaked)+len(s.retiring) == 0 {
		return nil
	}
	hold, err := s.env.Hosts.FleetHold(ctx)
	if err != nil || !hold.InForce(now) {
		return err
	}
	for _, m := range s.leaked {
		s.Events.RecordMachine(m.InstanceID, keptByHold(hold, "; else it would be ended: "+m.why))
	}
	for _, r := range s.retiring {
		s.Events.RecordMachine(r.InstanceID, keptByHold(hold, "; else it would be retired: "+r.Why.Text))
	}
	s.leaked, s.retiring = nil, nil
	return nil
}

// keptByHold is the decision on a machine that only the fleet's hold keeps.
func keptByHold(h fleethold.Hold, otherwise string) lifecycle.Decision {
	return lifecycle.Decision{Action: lifecycle.ActionKeep, Code: lifecycle.ReasonFleetHeld, Reason: h.String() + otherwise}
}

// judged reports whether the sweep may end a machine for want of a record. It may not if another than the fleet launched it, or if it is younger
// than the grace period.
func (sw *Sweeps) judged(m lifecycle.Machine, now time.Time) bool {
	return !m.Foreign && now.Sub(m.LaunchedAt) >= sw.Timing.Grace
}

// leak says why the machine has no owner, or "".
func (sw *Sweeps) leak(ctx context.Context, m lifecycle.Machine, records map[string]lifecycle.Record, now time.Time) (string, error) {
	if !sw.judged(m, now) {
		return "", nil
	}
	if r, ok := records[m.HostKey]; ok {
		if r.State == lifecycle.StateTerminated && r.DueAt.IsZero() {
			return sw.Hosts.Policy(r.Pool).CloudName() + " still runs a machine whose end was confirmed", nil
		}
		return "", nil
	}
	why := "a machine with our tag and no record"
	q, err := sw.Store.Request(ctx, m.Repository, m.RunID, m.RequestID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		why = "a machine with our tag, no record and no request"
	case err != nil:
		return "", fmt.Errorf("read request %s: %w", m.RequestID, err)
	case q.Launch != nil && q.Launch.Number == m.Launch:
		return "", nil // the request will record it
	}
	return sw.unrecorded(ctx, m, why)
}

// unrecorded returns why if the machine has no record. It asks once more, after the request: that may have
// recorded the machine and closed its launch between the two reads. And a record that cannot be read is one.
func (sw *Sweeps) unrecorded(ctx context.Context, m lifecycle.Machine, why string) (string, error) {
	_, err := sw.Store.Instance(ctx, m.HostKey)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return why, nil
	case errors.Is(err, lifecycle.ErrUnavailable):
		return "", fmt.Errorf("read host %s: %w", m.InstanceID, err)
	case err != nil:
		sw.Log.Error("a machine whose record cannot be read is left alone", logkey.Instance, m.InstanceID, logkey.Error, err)
	}
	return "", nil
}

// look looks closer at the lost hosts, which report, or did, from no machine of the list, and at those with older records.
func (s *CloudSweep) look(ctx context.Context, lost, older []string, reports map[string]lifecycle.Report, now time.Time) (op.Progress, error) {
	if err := s.env.deleteReports(ctx, &s.Events, lost, reports, now); err != nil {
		return op.Again, err
	}
	if err := s.hosts.begin(ctx, slices.Concat(lost, older), reports, now); err != nil {
		return op.Again, err
	}
	return s.Then(s.end)
}

// deleteReports deletes the reports of those of the hosts that have no record or were forgotten: no other operation comes
// back to them. Their last heartbeat is older than the grace period.
func (sw *Sweeps) deleteReports(ctx context.Context, j *op.Recorder, keys []string, reports map[string]lifecycle.Report, now time.Time) error {
	if j.Dry || len(keys) == 0 {
		return nil
	}
	owned := map[string]bool{}
	err := sw.recordsOf(ctx, keys, func(r lifecycle.Record) {
		owned[r.HostKey] = r.State != lifecycle.StateTerminated || !r.DueAt.IsZero()
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if p := reports[key]; owned[key] || now.Sub(p.HeartbeatAt) < sw.Timing.Grace {
			continue
		}
		if err := sw.Hosts.DeleteReport(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (s *CloudSweep) end(ctx context.Context, now time.Time) (op.Progress, error) {
	s.Next = s.retire
	if len(s.leaked) == 0 || s.Events.Dry {
		return op.Again, nil
	}
	if err := s.withoutRecorded(ctx); err != nil {
		return op.Again, err
	}
	ids := make([]string, 0, len(s.leaked))
	for _, m := range s.leaked {
		ids = append(ids, m.InstanceID)
	}
	if len(ids) == 0 {
		return op.Again, nil
	}
	s.env.Log.Warn("ending machines without a record", logkey.Instances, ids)
	if err := s.env.Hosts.EndMachines(ctx, ids, now); errors.Is(err, lifecycle.ErrUnavailable) {
		return op.Again, fmt.Errorf("terminate %s: %w", plural.Of(len(ids), "leaked machine", "leaked machines"), err)
	} else if err != nil {
		s.env.Log.Warn("machines without a record not ended; tried again later", logkey.Instances, ids, logkey.Error, err)
	}
	return op.Again, nil
}

// withoutRecorded leaves out the machines that have got a record since they were listed: a request that was lost and is made
// once more takes what its first launch made.
func (s *CloudSweep) withoutRecorded(ctx context.Context) error {
	keys := make([]string, 0, len(s.leaked))
	for _, m := range s.leaked {
		if m.unrecorded {
			keys = append(keys, m.HostKey)
		}
	}
	records, err := s.env.Store.Instances(ctx, keys)
	if err != nil {
		return fmt.Errorf("read hosts: %w", err)
	}
	s.leaked = slices.DeleteFunc(s.leaked, func(m leaked) bool {
		return m.unrecorded && slices.ContainsFunc(records, func(r lifecycle.Record) bool { return r.HostKey == m.HostKey })
	})
	return nil
}

func (s *CloudSweep) host(ctx context.Context, now time.Time) (op.Progress, error) {
	facts, err := s.hosts.next(ctx, now)
	if err != nil {
		return op.Again, err
	}
	if facts == nil {
		return s.lookThrough(ctx, now)
	}
	if _, _, err := s.env.Hosts.ReconcileSwept(ctx, &s.Events, *facts, now); !s.Past(ctx, err) {
		return op.Again, err
	}
	s.hosts.drop()
	return op.Again, nil
}

// staleAfter is how old a reservation must be for a sweep to audit its ledger. A shorter time
// audits hosts that were just taken; with a longer one room stays reserved that no host uses.
const staleAfter = 5 * time.Minute

// lookThrough looks through one account, if it has entries that are old enough.
func (s *CloudSweep) lookThrough(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.limits) == 0 || s.Events.Dry {
		return op.Done, nil
	}
	l := s.limits[0]
	room, err := s.env.Quota.Read(ctx, l)
	old := func(e ledger.Reservation) bool { return now.Sub(e.At) >= staleAfter }
	if err == nil && s.env.Quota.MayAudit(room.Ledger, now) && slices.ContainsFunc(room.Ledger.Reservations, old) {
		err = s.env.Quota.Audit(ctx, room, now)
	}
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	s.limits = s.limits[1:]
	return op.Again, nil
}

// machines is the second half of a termination, for all that are due: ask the cloud once, tell it once, and
// when a machine is gone remove what is left of its registration and forget the host.
func (s *DueSweep) machines(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.ending) == 0 {
		s.stage, s.clouds = listingHosts, nil
		return op.Again, nil
	}
	clouds, err := s.env.Hosts.Describe(ctx, s.ending, now)
	if refused := err != nil && !errors.Is(err, lifecycle.ErrUnavailable); refused {
		s.env.Log.Warn("machines not described; they are ended without that", logkey.Error, err)
	} else if err != nil {
		return op.Again, err
	}
	s.stage, s.clouds = endingMachines, clouds
	return op.Again, nil
}

// endMachines tells the cloud of every machine that it still runs, in one
// call, and then goes through the hosts one by one.
func (s *DueSweep) endMachines(ctx context.Context, now time.Time) (op.Progress, error) {
	s.hold = nil
	var ids []string
	for _, r := range s.ending {
		if s.env.Hosts.Decide(hosts.CloudFacts(r, s.clouds), now).Action == lifecycle.ActionEndMachine {
			ids = append(ids, r.InstanceID)
		}
	}
	if len(ids) > 0 {
		var held *hosts.FleetHeldError
		if err := s.env.Hosts.EndMachines(ctx, ids, now); errors.Is(err, lifecycle.ErrUnavailable) {
			return op.Again, fmt.Errorf("terminate %s: %w", plural.Of(len(ids), "machine", "machines"), err)
		} else if errors.As(err, &held) {
			s.hold = &held.Hold
		} else if err != nil {
			// One that may not be ended keeps no other from it.
			s.env.Log.Warn("machines not ended; tried again later", logkey.Instances, ids, logkey.Error, err)
		}
	}
	s.stage = endingHosts
	return op.Again, nil
}

// endHost does the next effect for one terminated host.
func (s *DueSweep) endHost(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.ending) == 0 {
		s.stage, s.clouds = listingHosts, nil
		return op.Again, nil
	}
	r := s.ending[0]
	facts := hosts.CloudFacts(r, s.clouds)
	facts.FleetHold = s.hold
	d := s.env.Hosts.Decide(facts, now)
	if d.Action == lifecycle.ActionDeleteRunner {
		gone, err := s.env.Hosts.DeleteRunner(ctx, r)
		if err != nil {
			s.env.Log.Warn("registration not deleted; tried again later", logkey.Instance, r.InstanceID, logkey.Runner, r.RunnerName, logkey.Error, err)
		}
		facts.Runner = &lifecycle.Runner{Name: r.RunnerName, Gone: gone}
		d = s.env.Hosts.Decide(facts, now)
	}
	s.Events.RecordDecision(r, d)
	_, err := s.env.Hosts.ApplyChecked(ctx, &s.Events, r, d, now)
	if err == nil && d.Action != lifecycle.ActionForget && d.Action != lifecycle.ActionHold {
		err = s.env.Hosts.Postpone(ctx, r, d, now)
	}
	if !errors.Is(err, lifecycle.ErrConflict) && !s.Past(ctx, err) {
		return op.Again, err
	}
	s.ending = s.ending[1:]
	return op.Again, nil
}
