package dynamo

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

type record = lifecycle.Record

// shards is how many partitions an index over all rows has. One partition
// takes 1,000 writes a second; the rows of a fleet of 100,000 hosts are written
// about that often. Each one is a query of its own in every due sweep.
const shards = 4

// shard is the partition of a row, for good.
func shard(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return fmt.Sprint(h.Sum32() % shards)
}

// instanceItem is the record with the attributes that its indexes need.
func instanceItem(r record) (item, error) {
	it, err := encode(r, r.ExpiresAt)
	if err != nil {
		return nil, err
	}
	it[hostShard] = text(hostPartition(r.State == lifecycle.StateTerminated, shard(r.HostKey)))
	if !r.DueAt.IsZero() {
		it[dueShard] = text(shard(r.HostKey))
	}
	if !r.PooledAt.IsZero() {
		it[poolKey] = text(poolPartition(r.Pool, lifecycle.QueueName{ResourceClass: r.ResourceClass, UsageClass: r.UsageClass}, r.TrustKey))
		it[nextRunnerName] = text(lifecycle.RunnerName(r.Assignment+1, r.InstanceID))
	}
	return it, nil
}

// hostPartition keeps the hosts that have ended apart: there may be many times
// more of them than live ones, which are what is mostly asked for.
func hostPartition(ended bool, shard string) string {
	if ended {
		return "ended-" + shard
	}
	return "live-" + shard
}

// poolPartition names the pool, so that the idle hosts of one hide none of another.
// It is read back by nobody.
func poolPartition(pool string, q lifecycle.QueueName, trustKey string) string {
	return pool + " " + q.ResourceClass + " " + string(q.UsageClass) + " " + trustKey
}

func instanceOf(it item) (record, error) {
	r, err := decode[record](it)
	r.ExpiresAt = exactly(r.ExpiresAt, it)
	return row.Record(r), err
}

// CreateInstance writes a new record with version 1: ErrExists if its host key
// is taken.
func (s *Store) CreateInstance(ctx context.Context, r record) error {
	what := "create instance " + r.HostKey
	r.Version = 1
	_, err := s.putInstance(ctx, what, r, s.isFree(hostKey))
	if errors.Is(err, errCondition) {
		return exists(what)
	}
	return err
}

// UpdateInstance replaces the record whose stored version is r.Version and
// returns it as stored: else ErrLost.
func (s *Store) UpdateInstance(ctx context.Context, r record) (record, error) {
	what := "update instance " + r.HostKey
	holds := isVersion(r.Version)
	r.Version++
	r, err := s.putInstance(ctx, what, r, holds)
	if errors.Is(err, errCondition) {
		return record{}, lost(what)
	}
	return r, err
}

func (s *Store) putInstance(ctx context.Context, what string, r record, c condition) (record, error) {
	if err := begin(ctx, what); err != nil {
		return record{}, err
	}
	r = row.Record(r)
	it, err := instanceItem(r)
	if err != nil {
		return record{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := s.put(ctx, what, instances, it, c); err != nil {
		return record{}, err
	}
	return r, nil
}

// Instance reads one record, consistently: ErrNotFound.
func (s *Store) Instance(ctx context.Context, key string) (record, error) {
	r, _, err := s.readInstance(ctx, key, true)
	return r, err
}

// readInstance also returns the answer as the SDK has it.
func (s *Store) readInstance(ctx context.Context, key string, consistent bool) (record, *dynamodb.GetItemOutput, error) {
	what := "read instance " + key
	if err := begin(ctx, what); err != nil {
		return record{}, nil, err
	}
	if key == "" { // which no key can be
		return record{}, nil, notFound(what)
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: s.table(instances), Key: item{hostKey: text(key)}, ConsistentRead: sdk.Bool(consistent),
	})
	if err != nil {
		return record{}, nil, s.failed(what, instances, err)
	}
	if out.Item == nil {
		return record{}, out, notFound(what)
	}
	r, err := instanceOf(out.Item)
	switch {
	case err != nil:
		return record{}, out, fmt.Errorf("%s: %w", what, err)
	case expired(r.ExpiresAt, s.now()):
		return record{}, out, notFound(what)
	}
	return r, out, nil
}

// Instances reads many records, consistently and in any order; missing ones
// are left out, and so are damaged ones, which Instance tells from them.
func (s *Store) Instances(ctx context.Context, hostKeys []string) ([]record, error) {
	found, err := s.batchGet(ctx, "read instances", instances, hostKeysOf(hostKeys), true)
	if err != nil {
		return nil, err
	}
	var records []record
	for _, it := range found {
		if r, ok := s.soundInstance(it); ok {
			records = append(records, r)
		}
	}
	return records, nil
}

// soundInstance is the record of an item; false if it is damaged, which is
// told of once, or has expired.
func (s *Store) soundInstance(it item) (record, bool) {
	r, err := instanceOf(it)
	if err != nil {
		s.tellDamaged(instances, textOf(it, hostKey), err)
		return record{}, false
	}
	return r, !expired(r.ExpiresAt, s.now())
}

// hostKeysOf are the keys of rows, each once.
func hostKeysOf(hostKeys []string) []item {
	seen := map[string]bool{"": true} // no key can be empty
	var keys []item
	for _, key := range hostKeys {
		if !seen[key] {
			seen[key] = true
			keys = append(keys, item{hostKey: text(key)})
		}
	}
	return keys
}
