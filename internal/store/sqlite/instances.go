package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

type (
	record     = lifecycle.Record
	recordPage = lifecycle.Page[lifecycle.Record]
)

const (
	insertInstance = `INSERT INTO instances
		(doc, version, state, run_id, pool, resource_class, usage_class, trust_key, pooled_at, due_at, expires_at, host_key)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING`
	updateInstance = `UPDATE instances
		SET doc = ?1, version = ?2, state = ?3, run_id = ?4, pool = ?5, resource_class = ?6, usage_class = ?7, trust_key = ?8,
			pooled_at = ?9, due_at = ?10, expires_at = ?11
		WHERE host_key = ?12 AND version = ?2 - 1`
	selectInstance  = `SELECT doc FROM instances WHERE host_key = ?1`
	selectInstances = `SELECT host_key, doc FROM instances WHERE host_key IN (SELECT value FROM json_each(?1)) ORDER BY host_key`
	selectByRun     = `SELECT host_key, doc FROM instances
		WHERE run_id = ?1 AND host_key > ?2 ORDER BY host_key LIMIT ?3`
	selectByPool = `SELECT host_key, doc FROM instances
		WHERE pool = ?1 AND resource_class = ?2 AND usage_class = ?3 AND trust_key = ?4 AND pooled_at IS NOT NULL
			AND (pooled_at, host_key) > (?5, ?6)
		ORDER BY pooled_at, host_key LIMIT ?7`
	selectDueInstances = `SELECT host_key, doc FROM instances
		WHERE due_at <= ?1 AND (due_at, host_key) > (?2, ?3) ORDER BY due_at, host_key LIMIT ?4`
	selectFiltered = `SELECT host_key, doc FROM instances
		WHERE host_key > ?1 AND (?2 = '' OR run_id = ?2) AND (?3 = '' OR resource_class = ?3)
			AND (?4 = 'null' OR state IN (SELECT value FROM json_each(?4)))
		ORDER BY host_key LIMIT ?5`
)

// instanceRow is the record as the columns of its row, in the order of the
// statements' parameters.
func instanceRow(what string, r record) ([]any, error) {
	doc, err := document(what, r)
	return []any{
		doc, r.Version, string(r.State), db.Text(r.RunID), r.Pool, r.ResourceClass, string(r.UsageClass), r.TrustKey,
		db.Time(r.PooledAt), db.Time(r.DueAt), db.Time(r.ExpiresAt), r.HostKey,
	}, err
}

// CreateInstance writes a new record with version 1: ErrExists if its host key
// is taken.
func (s *Store) CreateInstance(ctx context.Context, r record) error {
	what := "create instance " + r.HostKey
	r.Version = 1
	columns, err := instanceRow(what, row.Record(r))
	if err != nil {
		return err
	}
	return s.db.Write(ctx, what, func(c *db.Conn) error {
		n, err := c.Exec(insertInstance, columns...)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s: %w", what, lifecycle.ErrExists)
		}
		return err
	})
}

// UpdateInstance replaces the record whose stored version is r.Version and
// returns it as stored: else ErrLost.
func (s *Store) UpdateInstance(ctx context.Context, r record) (record, error) {
	what := "update instance " + r.HostKey
	r = row.Record(r)
	r.Version++
	columns, err := instanceRow(what, r)
	if err != nil {
		return record{}, err
	}
	err = s.db.Write(ctx, what, func(c *db.Conn) error { return replaceInstance(c, what, columns) })
	if err != nil {
		return record{}, err
	}
	return r, nil
}

func replaceInstance(c *db.Conn, what string, columns []any) error {
	n, err := c.Exec(updateInstance, columns...)
	if err == nil && n == 0 {
		err = lost(what)
	}
	return err
}

// ClaimInstance takes a pooled host if c.Holds for its record: else ErrLost.
// The caller does not read, but the transaction does: nobody writes between
// its look at the condition and its change.
func (s *Store) ClaimInstance(ctx context.Context, claim lifecycle.Claim) (record, error) {
	what := "claim instance " + claim.HostKey
	var claimed record
	err := s.db.Write(ctx, what, func(c *db.Conn) error {
		stored, err := many[record](c, what, selectInstance, claim.HostKey)
		if err != nil {
			return err
		}
		if len(stored) == 0 || !claim.Holds(stored[0]) {
			return lost(what)
		}
		if claimed, err = stored[0].Claimed(claim); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		claimed = row.Record(claimed)
		claimed.Version++
		columns, err := instanceRow(what, claimed)
		if err != nil {
			return err
		}
		return replaceInstance(c, what, columns)
	})
	if err != nil {
		return record{}, err
	}
	return claimed, nil
}

// Instance reads one record: ErrNotFound.
func (s *Store) Instance(ctx context.Context, hostKey string) (r record, err error) {
	what := "read instance " + hostKey
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		r, err = one[record](c, what, selectInstance, hostKey)
		return err
	})
	return r, err
}

// Instances reads many records, in order of host key; missing ones are left
// out, and so are damaged ones, which Instance tells from them.
func (s *Store) Instances(ctx context.Context, hostKeys []string) (records []record, err error) {
	const what = "read instances"
	keys, err := json.Marshal(hostKeys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		records, _, err = sound[record](s, c, what, selectInstances, string(keys))
		return err
	})
	return records, err
}

// InstancesOfRun lists the records that name the run, in order of host key.
func (s *Store) InstancesOfRun(ctx context.Context, runID string, of lifecycle.PageOf) (recordPage, error) {
	after, err := instancesByRun.after(of)
	if err != nil {
		return recordPage{}, err
	}
	return s.listInstances(ctx, instancesByRun, of, selectByRun, db.Text(runID), after.texts[0], oneMore(of))
}

// PooledInstances lists the pooled records of a pool, queue and trust key, the
// longest pooled first.
func (s *Store) PooledInstances(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, of lifecycle.PageOf) (recordPage, error) {
	after, err := instancesByPool.after(of)
	if err != nil {
		return recordPage{}, err
	}
	return s.listInstances(ctx, instancesByPool, of, selectByPool,
		pool, q.ResourceClass, string(q.UsageClass), trustKey, after.number, after.texts[0], oneMore(of))
}

// DueInstances lists the records with dueAt at or before now, the longest due
// first. It reads what is due and nothing else.
func (s *Store) DueInstances(ctx context.Context, now time.Time, of lifecycle.PageOf) (recordPage, error) {
	after, err := instancesByDue.after(of)
	if err != nil {
		return recordPage{}, err
	}
	return s.listInstances(ctx, instancesByDue, of, selectDueInstances,
		db.Nanos(now), after.number, after.texts[0], oneMore(of))
}

// ListInstances lists the records that pass the filter, in order of host key.
func (s *Store) ListInstances(ctx context.Context, f lifecycle.Filter, of lifecycle.PageOf) (recordPage, error) {
	after, err := instancesByKey.after(of)
	if err != nil {
		return recordPage{}, err
	}
	var states []lifecycle.State // null when there is none
	states = append(states, f.States...)
	wanted, err := json.Marshal(states)
	if err != nil {
		return recordPage{}, fmt.Errorf("list instances: %w", err)
	}
	return s.listInstances(ctx, instancesByKey, of, selectFiltered,
		after.texts[0], f.RunID, f.ResourceClass, string(wanted), oneMore(of))
}

func (s *Store) listInstances(ctx context.Context, x index[record], of lifecycle.PageOf, query string, args ...any) (page recordPage, err error) {
	what := "list " + x.name
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		records, read, err := sound[record](s, c, what, query, args...)
		if err == nil {
			page, err = x.pageOfSound(records, read, of)
		}
		return err
	})
	return page, err
}
