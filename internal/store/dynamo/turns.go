package dynamo

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// turnsItem is the accounts of a pool as they are stored. The open turns are
// one attribute, as JSON made small: they are written whole at each change, and
// a thousand of them as attributes would be 200 to 400 KB, where a row may have
// 400, and a unit is paid for each KB, of which one row takes 1,000 a second.
// Small they are about a tenth, since their repositories, hosts and times are
// much alike.
type turnsItem struct {
	Pool    string `json:"pool"`
	Given   int64  `json:"given"`
	Open    []byte `json:"open,omitempty"`
	Version int64  `json:"version"`
}

// maxOpenTurns bounds what a list is made into, in bytes: no more than 1,000
// turns, of less than 1 KB each.
const maxOpenTurns = 1 << 20

func turnsRowKey(pool string) string { return "turns/" + pool }

// SlotTable reads the accounts of a pool, consistently; those of one that has none
// are empty and of version 0.
func (s *Store) SlotTable(ctx context.Context, pool string) (lifecycle.SlotTable, error) {
	what := "read turns of pool " + pool
	it, err := s.getJobsRow(ctx, what, turnsRowKey(pool))
	if errors.Is(err, lifecycle.ErrNotFound) {
		return lifecycle.SlotTable{Pool: pool}, nil
	}
	if err != nil {
		return lifecycle.SlotTable{}, err
	}
	t, err := turnsOf(it)
	if err != nil {
		return lifecycle.SlotTable{}, fmt.Errorf("%s: %w", what, err)
	}
	return t, nil
}

// UpdateSlotTable replaces the accounts whose stored version is t.Version (0: there
// are none) and returns them as stored: else ErrLost.
func (s *Store) UpdateSlotTable(ctx context.Context, t lifecycle.SlotTable) (lifecycle.SlotTable, error) {
	what := "update turns of pool " + t.Pool
	if err := begin(ctx, what); err != nil {
		return lifecycle.SlotTable{}, err
	}
	holds := isVersion(t.Version)
	if t.Version == 0 {
		holds = isNone(rowKey)
	}
	t = row.Turns(t)
	t.Version++
	it, err := turnsItemOf(t)
	if err != nil {
		return lifecycle.SlotTable{}, fmt.Errorf("%s: %w", what, err)
	}
	err = s.put(ctx, what, jobs, it, holds)
	switch {
	case errors.Is(err, errCondition):
		return lifecycle.SlotTable{}, lost(what)
	case err != nil:
		return lifecycle.SlotTable{}, err
	}
	return t, nil
}

func turnsItemOf(t lifecycle.SlotTable) (item, error) {
	open, err := deflated(t.Open)
	if err != nil {
		return nil, err
	}
	it, err := encode(turnsItem{Pool: t.Pool, Given: t.Assigned, Open: open, Version: t.Version}, noExpiry)
	if err != nil {
		return nil, err
	}
	it[rowKey] = text(turnsRowKey(t.Pool))
	return it, nil
}

func turnsOf(it item) (lifecycle.SlotTable, error) {
	stored, err := decode[turnsItem](it)
	if err != nil {
		return lifecycle.SlotTable{}, err
	}
	open, err := inflated[lifecycle.Slot](stored.Open)
	if err != nil {
		return lifecycle.SlotTable{}, damagedError{"open"}
	}
	return row.Turns(lifecycle.SlotTable{Pool: stored.Pool, Assigned: stored.Given, Open: open, Version: stored.Version}), nil
}

// deflated makes a list small; an empty one is nothing.
func deflated[T any](rows []T) ([]byte, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(rows)
	if err == nil && len(text) > maxOpenTurns {
		err = fmt.Errorf("%d of them have %d bytes, %d at most can be read again", len(rows), len(text), maxOpenTurns)
	}
	if err != nil {
		return nil, fmt.Errorf("encode list: %w", err)
	}
	var small bytes.Buffer
	w, err := flate.NewWriter(&small, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encode list: %w", err)
	}
	return small.Bytes(), nil
}

func inflated[T any](small []byte) (rows []T, err error) {
	if len(small) == 0 {
		return nil, nil
	}
	r := flate.NewReader(bytes.NewReader(small))
	if err := json.NewDecoder(io.LimitReader(r, maxOpenTurns)).Decode(&rows); err != nil {
		return nil, fmt.Errorf("decode list: %w", err)
	}
	return rows, nil
}
