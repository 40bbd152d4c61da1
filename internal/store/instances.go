package store

import (
	"context"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The indexes of instances.
var (
	InstancesByKey  = &Index{Name: "instances"}
	InstancesByRun  = &Index{Name: "instances by run", By: []string{"run_id"}}
	InstancesByPool = &Index{
		Name: "instances by pool", By: []string{"pool", "resource_class", "usage_class", "trust_key"}, Order: "pooled_at",
	}
	InstancesByDue = &Index{Name: "instances by due", Order: Due}
)

// Instances are the hosts' records.
var Instances = define(Spec[lifecycle.Record]{
	Name:       "instance",
	Key:        func(r *lifecycle.Record) Key { return Key{r.HostKey} },
	KeyColumns: []string{"host_key"},
	Version:    func(r *lifecycle.Record) *int64 { return &r.Version },
	Expires:    func(r *lifecycle.Record) time.Time { return r.ExpiresAt },
	Columns: []Column[lifecycle.Record]{
		{"state", func(r *lifecycle.Record) Value { return TextValue(string(r.State)) }},
		{"run_id", func(r *lifecycle.Record) Value { return TextIf(r.RunID != "", r.RunID) }},
		{"pool", func(r *lifecycle.Record) Value { return TextValue(r.Pool) }},
		{"resource_class", func(r *lifecycle.Record) Value { return TextValue(r.ResourceClass) }},
		{"usage_class", func(r *lifecycle.Record) Value { return TextValue(string(r.UsageClass)) }},
		{"trust_key", func(r *lifecycle.Record) Value { return TextValue(poolGroup(r)) }},
		{"pooled_at", func(r *lifecycle.Record) Value { return TimeIf(!r.PooledAt.IsZero(), r.PooledAt) }},
		{Due, func(r *lifecycle.Record) Value { return TimeIf(!r.DueAt.IsZero(), r.DueAt) }},
	},
	Indexes: []*Index{InstancesByKey, InstancesByRun, InstancesByPool, InstancesByDue},
	SQL:     Table{Name: "instances"}, Dynamo: Table{Name: "instances"},
})

// stoppedGroup stands in the index by pool in place of the trust key of a stopped host, so that who looks for hosts that wait meets none
// of these. No trust key has a space.
const stoppedGroup = "stopped hosts"

func poolGroup(r *lifecycle.Record) string {
	if r.Stopped() {
		return stoppedGroup
	}
	return r.TrustKey
}

// CreateInstance writes a new record: ErrExists if the host key is taken.
func (s Store) CreateInstance(ctx context.Context, r lifecycle.Record) error {
	return create(ctx, s, Instances, r)
}

// UpdateInstance replaces the record whose stored version is r.Version: else ErrConflict.
func (s Store) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	return update(ctx, s, Instances, r)
}

// ClaimInstance takes a pooled host if c.Holds for its record: else ErrConflict.
func (s Store) ClaimInstance(ctx context.Context, c lifecycle.Claim) (_ lifecycle.Record, err error) {
	defer s.observed("", "claim_instance", &err)
	return s.backend.ClaimInstance(ctx, c)
}

// Instance reads one record, consistently: ErrNotFound.
func (s Store) Instance(ctx context.Context, hostKey string) (lifecycle.Record, error) {
	return get(ctx, s, Instances, Key{hostKey})
}

// Instances reads many records, consistently and in any order; missing ones are left out.
func (s Store) Instances(ctx context.Context, hostKeys []string) ([]lifecycle.Record, error) {
	keys := make([]Key, len(hostKeys))
	for i, hostKey := range hostKeys {
		keys[i] = Key{hostKey}
	}
	return getMany(ctx, s, "instances", Instances, keys)
}

// InstancesOfRun lists the records that name the run, in order of host key.
func (s Store) InstancesOfRun(ctx context.Context, runID string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	return list(ctx, s, Instances, Query{
		Op: "instances_of_run", Index: InstancesByRun, Partitions: [][]string{{runID}}, Page: page,
	})
}

// PooledInstances lists the pooled records of a pool, queue and trust key, the longest pooled first.
func (s Store) PooledInstances(
	ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, page lifecycle.PageOf,
) (lifecycle.Page[lifecycle.Record], error) {
	return list(ctx, s, Instances, Query{
		Op: "pooled_instances", Index: InstancesByPool,
		Partitions: [][]string{{pool, q.ResourceClass, string(q.UsageClass), trustKey}}, Page: page,
	})
}

// NewestPooled lists the last of what PooledInstances lists, at most limit, the shortest pooled first.
func (s Store) NewestPooled(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, limit int) ([]lifecycle.Record, error) {
	return s.newestPooled(ctx, Query{Op: "newest_pooled"}, pool, q, trustKey, limit)
}

// ClaimablePooled lists what NewestPooled lists, as it was a moment ago: a claim's condition decides about each. It costs half as much.
func (s Store) ClaimablePooled(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, limit int) ([]lifecycle.Record, error) {
	return s.newestPooled(ctx, Query{Op: "claimable_pooled", Stale: true}, pool, q, trustKey, limit)
}

func (s Store) newestPooled(ctx context.Context, of Query, pool string, q lifecycle.QueueName, trustKey string, limit int) ([]lifecycle.Record, error) {
	of.Index, of.Newest, of.Page = InstancesByPool, true, lifecycle.PageOf{Limit: limit}
	of.Partitions = [][]string{{pool, q.ResourceClass, string(q.UsageClass), trustKey}}
	page, err := list(ctx, s, Instances, of)
	return page.Items, err
}

// StoppedInstances lists the stopped hosts of a pool and queue, of whatever trust key, at most limit, the shortest pooled first.
func (s Store) StoppedInstances(ctx context.Context, pool string, q lifecycle.QueueName, limit int) ([]lifecycle.Record, error) {
	page, err := list(ctx, s, Instances, Query{
		Op: "stopped_instances", Index: InstancesByPool, Newest: true,
		Partitions: [][]string{{pool, q.ResourceClass, string(q.UsageClass), stoppedGroup}}, Page: lifecycle.PageOf{Limit: limit},
	})
	return page.Items, err
}

// DueInstances lists the records that were due at now or before, the longest due first.
func (s Store) DueInstances(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	return listDue(ctx, s, Instances, "due_instances", InstancesByDue, now, page)
}

// ListInstances lists the records that pass the filter, in order of host key. It is for people. With a part of the filter that
// Filter.Passes names, a page may have fewer than its limit, or none, and a next one.
func (s Store) ListInstances(ctx context.Context, f lifecycle.Filter, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	q := Query{Op: "list_instances", Index: InstancesByKey, Partitions: whole, Stale: true, Page: page}
	if f.RunID != "" {
		q.Index, q.Partitions = InstancesByRun, [][]string{{f.RunID}}
	}
	if len(f.States) > 0 {
		states := make([]string, len(f.States))
		for i, state := range f.States {
			states[i] = string(state)
		}
		q.Where = append(q.Where, Match{"state", states})
	}
	if f.ResourceClass != "" {
		q.Where = append(q.Where, Match{"resource_class", []string{f.ResourceClass}})
	}
	if f.Pool != "" {
		q.Where = append(q.Where, Match{"pool", []string{f.Pool}})
	}
	got, err := list(ctx, s, Instances, q)
	// A column for these would be missing in what older versions wrote.
	got.Items = slices.DeleteFunc(got.Items, func(r lifecycle.Record) bool { return !f.Passes(r) })
	return got, err
}
