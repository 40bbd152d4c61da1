package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// FactsOf loads all that is known of a living host, including what the cloud says. A host that
// has ended has no facts.
func (hs *Hosts) FactsOf(ctx context.Context, hostKey string, now time.Time) ([]lifecycle.Facts, error) {
	reports, err := hs.Reports(ctx, []string{hostKey}, now)
	if err != nil {
		return nil, err
	}
	return hs.LoadFactsWithCloud(ctx, []string{hostKey}, reports, now)
}

// LoadFacts reads what is known about hosts, in batches: their reports and the requests that they name.
func (hs *Hosts) LoadFacts(ctx context.Context, records []lifecycle.Record, now time.Time) ([]lifecycle.Facts, error) {
	keys := make([]string, 0, len(records))
	for _, r := range records {
		if r.State != lifecycle.StateTerminated {
			keys = append(keys, r.HostKey)
		}
	}
	reports, err := hs.Reports(ctx, keys, now)
	if err != nil {
		return nil, err
	}
	return hs.factsOf(ctx, records, reports, nil, now)
}

// factsOf puts together what is known about hosts, and reads the requests that they name.
func (hs *Hosts) factsOf(ctx context.Context, records []lifecycle.Record, reports map[string]lifecycle.Report, clouds map[string]lifecycle.Machine, now time.Time) (_ []lifecycle.Facts, err error) {
	requests := map[string]*lifecycle.Request{}
	facts := make([]lifecycle.Facts, 0, len(records))
	for _, r := range records {
		fact := CloudFacts(r, clouds)
		if report, ok := reports[r.HostKey]; ok {
			fact.Report = &report
		}
		if fact.Request, err = hs.requestIfReadable(ctx, r, requests); err != nil {
			return nil, err
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// requestIfReadable is RequestOf, except that a request that cannot be read counts as unknown
// (nil), like one that is gone. An unknown request gets no host released or replaced; other
// reasons to end the host still count.
func (hs *Hosts) requestIfReadable(ctx context.Context, r lifecycle.Record, seen map[string]*lifecycle.Request) (*lifecycle.Request, error) {
	q, err := hs.RequestOf(ctx, r, seen)
	if err != nil && !op.Transient(ctx, err) {
		hs.Log.Error("a request cannot be read; its host is looked at without it", logkey.Instance, r.InstanceID, logkey.Run, r.RunID, logkey.Error, err)
		return nil, nil
	}
	return q, err
}

// RequestOf reads the request that a record names, once per request.
func (hs *Hosts) RequestOf(ctx context.Context, r lifecycle.Record, seen map[string]*lifecycle.Request) (*lifecycle.Request, error) {
	if r.RunID == "" || r.RequestID == "" {
		return nil, nil
	}
	key := lifecycle.RunKey(r.Repository, r.RunID) + "\x00" + r.RequestID
	if q, ok := seen[key]; ok {
		return q, nil
	}
	q, err := hs.Store.Request(ctx, r.Repository, r.RunID, r.RequestID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		seen[key] = nil
	case err != nil:
		return nil, fmt.Errorf("read request %s: %w", r.RequestID, err)
	default:
		seen[key] = &q
	}
	return seen[key], nil
}

// LoadFactsWithCloud reads all that is known about hosts, including what the cloud says. It asks the cloud
// first and the store second, so that a host that is new to one of them is not taken for lost.
func (hs *Hosts) LoadFactsWithCloud(ctx context.Context, keys []string, reports map[string]lifecycle.Report, now time.Time) ([]lifecycle.Facts, error) {
	records, err := hs.Store.Instances(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read hosts: %w", err)
	}
	clouds, err := hs.Describe(ctx, records, now)
	if err != nil {
		hs.Log.Warn("EC2 does not answer; deciding without it", logkey.Error, err)
		clouds = nil
	}
	hs.warnOfUnshown(clouds)
	if records, err = hs.Store.Instances(ctx, keys); err != nil {
		return nil, fmt.Errorf("read hosts: %w", err)
	}
	// Terminated hosts are the due sweep's.
	living := slices.DeleteFunc(records, func(r lifecycle.Record) bool { return r.State == lifecycle.StateTerminated })
	return hs.factsOf(ctx, living, reports, clouds, now)
}

// warnOfUnshown logs that the cloud does not show some machines. To lifecycle.Decide these are unknown, and not gone.
func (hs *Hosts) warnOfUnshown(clouds map[string]lifecycle.Machine) {
	var unshown []string
	for id, m := range clouds {
		if !m.Shown() {
			unshown = append(unshown, id)
		}
	}
	if len(unshown) > 0 {
		slices.Sort(unshown)
		hs.Log.Warn("EC2 does not show machines of hosts: they ended more than an hour ago, or controld asks another region or account",
			logkey.Count, len(unshown), logkey.Instance, unshown[0])
	}
}

// Describe asks the cloud about hosts, by instance id. The cloud may not know a new machine yet: while the
// host is younger than the grace period, an unknown machine is left out and does not count as gone.
func (hs *Hosts) Describe(ctx context.Context, records []lifecycle.Record, now time.Time) (map[string]lifecycle.Machine, error) {
	ids := make([]string, 0, len(records))
	young := map[string]bool{}
	for _, r := range records {
		ids = append(ids, r.InstanceID)
		young[r.InstanceID] = now.Sub(r.LaunchedAt) < hs.Timing.Grace
	}
	machines, err := hs.Compute.Describe(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", plural.Of(len(ids), "machine", "machines"), err)
	}
	byID := make(map[string]lifecycle.Machine, len(machines))
	for _, m := range machines {
		if m.Shown() || !young[m.InstanceID] {
			byID[m.InstanceID] = m
		}
	}
	return byID, nil
}

func CloudFacts(r lifecycle.Record, clouds map[string]lifecycle.Machine) lifecycle.Facts {
	facts := lifecycle.Facts{Record: r}
	if m, ok := clouds[r.InstanceID]; ok {
		facts.Cloud = &m
	}
	return facts
}

// Reports reads what the agents of hosts report, by host key. A report is untrusted input.
// Reports and AllReports are the only ways to one, and return what may be believed of it.
func (hs *Hosts) Reports(ctx context.Context, hostKeys []string, now time.Time) (map[string]lifecycle.Report, error) {
	if len(hostKeys) == 0 {
		return map[string]lifecycle.Report{}, nil
	}
	stored, err := hs.Store.Reports(ctx, hostKeys)
	if err != nil {
		hs.health.reportsAway()
		return nil, fmt.Errorf("read reports: %w", err)
	}
	hs.health.storeAnswers(now)
	for key, p := range stored {
		if p.Check(now) == nil { // as it nearly always is, so that it need not be copied
			hs.malformed.Delete(key)
			continue
		}
		delete(stored, key)
		hs.believe(stored, key, p, now)
	}
	return stored, nil
}

// AllReports is Reports for every host that has one. The keys include hosts whose report has
// nothing that may be believed.
func (hs *Hosts) AllReports(ctx context.Context, now time.Time) (keys []string, believed map[string]lifecycle.Report, err error) {
	believed = map[string]lifecycle.Report{}
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Report], error) {
		return hs.Store.AllReports(ctx, page)
	}
	for p, err := range listing.All(lifecycle.PageOf{Limit: 1000}, list) {
		if err != nil {
			hs.health.reportsAway()
			return nil, nil, fmt.Errorf("list reports: %w", err)
		}
		keys = append(keys, p.HostKey)
		hs.believe(believed, p.HostKey, p, now)
	}
	hs.health.storeAnswers(now)
	return keys, believed, nil
}

// Machines lists every machine with the fleet's tag that is not gone.
func (hs *Hosts) Machines(ctx context.Context) ([]lifecycle.Machine, error) {
	var machines []lifecycle.Machine
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
		return hs.Compute.List(ctx, page)
	}
	for m, err := range listing.All(lifecycle.PageOf{Limit: 1000}, list) {
		if err != nil {
			return nil, fmt.Errorf("list machines: %w", err)
		}
		machines = append(machines, m)
	}
	return machines, nil
}

// believe adds what may be believed of a report, and logs a malformed one, once until it is
// well-formed again: reports are read several times a second.
func (hs *Hosts) believe(believed map[string]lifecycle.Report, key string, p lifecycle.Report, now time.Time) {
	word, err := p.Believed(now)
	if word != nil {
		believed[key] = *word
	}
	if err == nil {
		hs.malformed.Delete(key)
		return
	}
	if _, told := hs.malformed.LoadOrStore(key, true); !told {
		hs.Log.Warn("malformed report; only its busy flag is used", logkey.Instance, key, logkey.Busy, p.Busy, logkey.Error, err)
	}
}

// DeleteReport removes the report of a host that has ended.
func (hs *Hosts) DeleteReport(ctx context.Context, hostKey string) error {
	if err := hs.Store.DeleteReport(ctx, hostKey); err != nil {
		return fmt.Errorf("delete report of %s: %w", hostKey, err)
	}
	hs.malformed.Delete(hostKey)
	return nil
}

// OfRequest lists the hosts that serve a request, or were taken for it: by the request's own
// list, by the by-run index and by the keys that the caller knows. Hosts that are being
// released from the request are returned apart; hosts that have moved on are left out.
func (hs *Hosts) OfRequest(ctx context.Context, q lifecycle.Request, known []string) (serving, leaving []lifecycle.Record, err error) {
	keys := make([]string, 0, len(q.Taken)+len(known))
	for _, t := range q.Taken {
		keys = append(keys, t.HostKey)
	}
	for _, key := range known {
		if !q.Has(key) {
			keys = append(keys, key)
		}
	}
	records, err := hs.Store.Instances(ctx, keys)
	if err != nil {
		return nil, nil, fmt.Errorf("read hosts of request %s: %w", q.RequestID, err)
	}
	indexed, err := hs.ofRun(ctx, q.Repository, q.RunID)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range indexed {
		if !slices.Contains(keys, r.HostKey) {
			records = append(records, r)
		}
	}
	for _, r := range records {
		switch {
		case Serves(r, q):
			serving = append(serving, r)
		case Leaves(r, q):
			leaving = append(leaving, r)
		}
	}
	return serving, leaving, nil
}

// Serves reports whether the record is assigned to the request.
func Serves(r lifecycle.Record, q lifecycle.Request) bool {
	return r.RequestID == q.RequestID && r.RunID == q.RunID && r.Repository == q.Repository
}

// Leaves reports whether the record is being released from the request. Runs of one workflow may name their requests alike, so the run that had the host
// counts, where it is known. No two requests of job pools have one name, and the run of a job-scoped host is not that of its request.
func Leaves(r lifecycle.Record, q lifecycle.Request) bool {
	if !r.Releasing() || r.RequestID != q.RequestID || r.Repository != q.Repository {
		return false
	}
	repository, runID := r.RunBefore()
	return r.JobsOf != "" || runID == "" || repository == q.Repository && runID == q.RunID
}

// ofRun lists the records that name the run, by the index.
func (hs *Hosts) ofRun(ctx context.Context, repository, runID string) ([]lifecycle.Record, error) {
	var records []lifecycle.Record
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		return hs.Store.InstancesOfRun(ctx, runID, page)
	}
	for r, err := range listing.All(lifecycle.PageOf{}, list) {
		if err != nil {
			return nil, fmt.Errorf("list hosts of run %s: %w", runID, err)
		}
		if r.Repository == repository {
			records = append(records, r)
		}
	}
	return records, nil
}

// WaitingJobs are the jobs that wait for hosts of the run of a host, and that it could run.
func (hs *Hosts) WaitingJobs(ctx context.Context, r lifecycle.Record) ([]lifecycle.Job, error) {
	if hs.JobStore == nil || r.RunID == "" || r.JobsOf != "" {
		return nil, nil
	}
	jobs, err := hs.JobStore.OpenJobsOfRun(ctx, r.Repository, r.RunID)
	if err != nil {
		return nil, fmt.Errorf("list jobs of run %s: %w", r.RunID, err)
	}
	return slices.DeleteFunc(jobs, func(j lifecycle.Job) bool { return j.State != lifecycle.JobWaiting || !couldRun(r, j) }), nil
}

// couldRun reports whether a run's host has the labels of a job of the run.
func couldRun(r lifecycle.Record, j lifecycle.Job) bool {
	labels, class, ok := policy.RunLabels(j.Labels, j.RunID)
	if !ok || class != "" && class != r.ResourceClass {
		return false
	}
	return !slices.ContainsFunc(labels, func(label string) bool {
		return !strings.EqualFold(label, "remuda-"+class) &&
			!slices.ContainsFunc(r.Labels, func(has string) bool { return strings.EqualFold(has, label) })
	})
}
