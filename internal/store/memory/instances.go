package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// CreateInstance writes a new record with version 1: ErrExists if its host key
// is taken.
func (s *Store) CreateInstance(ctx context.Context, r lifecycle.Record) error {
	what := "create instance " + r.HostKey
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return err
	}
	defer end()
	if _, ok := s.instances[r.HostKey]; ok {
		return fmt.Errorf("%s: %w", what, lifecycle.ErrExists)
	}
	r.Version = 1
	s.instances[r.HostKey] = new(row.Record(r))
	return nil
}

// UpdateInstance replaces the record whose stored version is r.Version and
// returns it as stored: else ErrLost.
func (s *Store) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	what := "update instance " + r.HostKey
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.Record{}, err
	}
	defer end()
	if old, ok := s.instances[r.HostKey]; !ok || old.Version != r.Version {
		return lifecycle.Record{}, lost(what)
	}
	return s.putInstance(r), nil
}

// ClaimInstance takes a pooled host if c.Holds for its record: else ErrLost.
func (s *Store) ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	what := "claim instance " + c.HostKey
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.Record{}, err
	}
	defer end()
	old, ok := s.instances[c.HostKey]
	if !ok || !c.Holds(*old) {
		return lifecycle.Record{}, lost(what)
	}
	claimed, err := old.Claimed(c)
	if err != nil {
		return lifecycle.Record{}, fmt.Errorf("%s: %w", what, err)
	}
	return s.putInstance(claimed), nil
}

func (s *Store) putInstance(r lifecycle.Record) lifecycle.Record {
	r.Version++
	s.instances[r.HostKey] = new(row.Record(r))
	return row.Record(r)
}

// Instance reads one record: ErrNotFound.
func (s *Store) Instance(ctx context.Context, hostKey string) (lifecycle.Record, error) {
	what := "read instance " + hostKey
	end, err := s.begin(ctx, what)
	if err != nil {
		return lifecycle.Record{}, err
	}
	defer end()
	r, ok := s.instances[hostKey]
	if !ok {
		return lifecycle.Record{}, fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	return row.Record(*r), nil
}

// Instances reads many records, in order of host key; missing ones are left out.
func (s *Store) Instances(ctx context.Context, hostKeys []string) ([]lifecycle.Record, error) {
	end, err := s.begin(ctx, "read instances")
	if err != nil {
		return nil, err
	}
	defer end()
	var records []lifecycle.Record
	for _, key := range slices.Compact(slices.Sorted(slices.Values(hostKeys))) {
		if r, ok := s.instances[key]; ok {
			records = append(records, row.Record(*r))
		}
	}
	return records, nil
}

// InstancesOfRun lists the records that name the run, in order of host key.
func (s *Store) InstancesOfRun(ctx context.Context, runID string, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	return s.listInstances(ctx, byRun, of, func(r *lifecycle.Record) bool { return runID != "" && r.RunID == runID })
}

// PooledInstances lists the pooled records of a pool, queue and trust key, the
// longest pooled first.
func (s *Store) PooledInstances(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	return s.listInstances(ctx, byPool, of, func(r *lifecycle.Record) bool {
		return !r.PooledAt.IsZero() && r.Pool == pool && r.TrustKey == trustKey &&
			r.ResourceClass == q.ResourceClass && r.UsageClass == q.UsageClass
	})
}

// DueInstances lists the records with dueAt at or before now, the longest due
// first.
func (s *Store) DueInstances(ctx context.Context, now time.Time, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	return s.listInstances(ctx, byDue, of, func(r *lifecycle.Record) bool { return expired(r.DueAt, now) })
}

// ListInstances lists the records that pass the filter, in order of host key.
func (s *Store) ListInstances(ctx context.Context, f lifecycle.Filter, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	return s.listInstances(ctx, byKey, of, func(r *lifecycle.Record) bool {
		return (len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
			(f.RunID == "" || r.RunID == f.RunID) &&
			(f.ResourceClass == "" || r.ResourceClass == f.ResourceClass)
	})
}

func (s *Store) listInstances(ctx context.Context, x index[lifecycle.Record], of lifecycle.PageOf, in func(*lifecycle.Record) bool) (lifecycle.Page[lifecycle.Record], error) {
	end, err := s.begin(ctx, "list instances "+x.name)
	if err != nil {
		return lifecycle.Page[lifecycle.Record]{}, err
	}
	defer end()
	return x.page(maps.Values(s.instances), in, of)
}
