package store

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
)

// maxOpenSlots is how many bytes the open slots of a pool have as JSON, at most: 1,000 slots of less than 1 KB.
const maxOpenSlots = 1 << 20

// SlotTables are the slots of the job pools, one row for each pool.
//
// The open slots are written whole at each change. A thousand of them as attributes would be 200 to 400 KB. A DynamoDB
// row may have 400 KB, each KB costs a write unit, and one row takes 1,000 units a second. Compressed they are about a
// tenth, since their repositories, hosts and times are much alike.
var SlotTables = define(Spec[slots.Table]{
	Name:       "turns",
	Label:      func(key Key) string { return "slots of pool " + key[0] },
	Key:        func(t *slots.Table) Key { return Key{t.Pool} },
	KeyColumns: []string{"pool"},
	Version:    func(t *slots.Table) *int64 { return &t.Version },
	Upsert:     true,
	Blank:      func(key Key) slots.Table { return slots.Table{Pool: key[0]} },
	SQL:        Table{Name: "turns"}, Dynamo: Table{Name: "jobs", Prefix: "turns/"},
	Large: []Large[slots.Table]{{"open", func(t *slots.Table) any { return &t.Open }, maxOpenSlots}},
})

// SlotTable reads the slots of a pool, consistently. The table of a pool that has none is empty and of version 0.
func (s Store) SlotTable(ctx context.Context, pool string) (slots.Table, error) {
	return get(ctx, s, SlotTables, Key{pool})
}

// UpdateSlotTable replaces the table whose stored version is t.Version (0: there is none): else ErrConflict.
func (s Store) UpdateSlotTable(ctx context.Context, t slots.Table) (slots.Table, error) {
	return update(ctx, s, SlotTables, t)
}
