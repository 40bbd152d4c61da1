package dynamo

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

type (
	recordPage  = lifecycle.Page[lifecycle.Record]
	requestPage = lifecycle.Page[lifecycle.Request]
)

// everyShard is the partitions of an index over all rows.
var everyShard = func() (all []string) {
	for i := range shards {
		all = append(all, strconv.Itoa(i))
	}
	return all
}()

// InstancesOfRun lists the records that name the run, in order of host key.
func (s *Store) InstancesOfRun(ctx context.Context, run string, of lifecycle.PageOf) (recordPage, error) {
	return s.listRun(ctx, run, func(record) bool { return true }, of, true)
}

func (s *Store) listRun(ctx context.Context, run string, in func(record) bool, of lifecycle.PageOf, consistent bool) (recordPage, error) {
	r := read[record]{
		query: query{listing: instancesByRun}, consistent: consistent, sound: s.soundInstance,
		in: func(r record) bool { return r.RunID == run && in(r) },
	}
	if run != "" { // without which a row is not in the index
		r.partitions = []string{run}
	}
	return list(ctx, s, r, of)
}

// PooledInstances lists the pooled records of a pool, queue and trust key, the
// longest pooled first.
func (s *Store) PooledInstances(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, of lifecycle.PageOf) (recordPage, error) {
	return list(ctx, s, read[record]{
		query:      query{listing: instancesByPool, partitions: []string{poolPartition(pool, q, trustKey)}},
		consistent: true, sound: s.soundInstance,
		in: func(r record) bool {
			return !r.PooledAt.IsZero() && r.Pool == pool && r.TrustKey == trustKey &&
				r.ResourceClass == q.ResourceClass && r.UsageClass == q.UsageClass
		},
	}, of)
}

// DueInstances lists the records with dueAt at or before now, the longest due
// first. It reads what is due and nothing else.
func (s *Store) DueInstances(ctx context.Context, now time.Time, of lifecycle.PageOf) (recordPage, error) {
	return list(ctx, s, read[record]{
		query:      query{listing: instancesByDue, partitions: everyShard, upTo: timeText(now)},
		consistent: true, sound: s.soundInstance,
		in: func(r record) bool { return expired(r.DueAt, now) },
	}, of)
}

// DueRequests lists the requests with dueAt at or before now, the longest due
// first. It reads what is due and nothing else.
func (s *Store) DueRequests(ctx context.Context, now time.Time, of lifecycle.PageOf) (requestPage, error) {
	return list(ctx, s, read[request]{
		query:      query{listing: requestsByDue, partitions: everyShard, upTo: timeText(now)},
		consistent: true, sound: s.soundRequest,
		in: func(q request) bool { return expired(q.DueAt, now) },
	}, of)
}

// ListInstances lists the records that pass the filter, in order of host key.
// A scan has no order, so there is an index for it: it costs one write when a
// host begins and two when it ends, and no page costs more than what is on it.
func (s *Store) ListInstances(ctx context.Context, f lifecycle.Filter, of lifecycle.PageOf) (recordPage, error) {
	in := func(r record) bool {
		return (len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
			(f.ResourceClass == "" || r.ResourceClass == f.ResourceClass)
	}
	if f.RunID != "" {
		return s.listRun(ctx, f.RunID, in, of, false)
	}
	return list(ctx, s, read[record]{
		query: query{listing: instancesByHost, partitions: hostPartitions(f.States)},
		in:    in, sound: s.soundInstance,
	}, of)
}

// hostPartitions are those that may have hosts in one of the states; none: any.
func hostPartitions(states []lifecycle.State) []string {
	ended := func(state lifecycle.State) bool { return state == lifecycle.StateTerminated }
	live := func(state lifecycle.State) bool { return !ended(state) }
	var found []string
	for _, shard := range everyShard {
		if len(states) == 0 || slices.ContainsFunc(states, live) {
			found = append(found, hostPartition(false, shard))
		}
		if len(states) == 0 || slices.ContainsFunc(states, ended) {
			found = append(found, hostPartition(true, shard))
		}
	}
	return found
}
