package dynamo

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/store"
)

// Create writes a row: ErrExists if its key is taken.
func (s *Store) Create(ctx context.Context, k *store.Kind, row store.Row) error {
	what := "create " + k.Label(k.Key(row))
	err := s.putRow(ctx, what, k, row, s.isFree(schemaOf(k).hash))
	if errors.Is(err, errCondition) {
		return exists(what)
	}
	return err
}

// Update replaces the row whose stored version is one less than the row's: else ErrConflict.
func (s *Store) Update(ctx context.Context, k *store.Kind, row store.Row) error {
	what := "update " + k.Label(k.Key(row))
	holds := isVersion(*k.Version(row) - 1)
	if k.Upsert && *k.Version(row) == 1 {
		holds = isNone(schemaOf(k).hash)
	}
	err := s.putRow(ctx, what, k, row, holds)
	if errors.Is(err, errCondition) {
		return lost(what)
	}
	return err
}

func (s *Store) putRow(ctx context.Context, what string, k *store.Kind, row store.Row, c condition) error {
	it, err := itemOf(k, row)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.put(ctx, what, k.Dynamo.Name, it, c)
}

// Get reads one row, consistently: ErrNotFound.
func (s *Store) Get(ctx context.Context, k *store.Kind, key store.Key) (store.Row, error) {
	row, _, err := s.get(ctx, k, key, true)
	return row, err
}

// get also returns the answer as the SDK has it.
func (s *Store) get(ctx context.Context, k *store.Kind, key store.Key, consistent bool) (store.Row, *dynamodb.GetItemOutput, error) {
	what, it := "read "+k.Label(key), keyItem(k, key)
	if !schemaOf(k).validKey(it) {
		return nil, nil, notFound(what)
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: s.table(k.Dynamo.Name), Key: it, ConsistentRead: sdk.Bool(consistent),
	})
	if err != nil {
		return nil, nil, s.failed(what, k.Dynamo.Name, err)
	}
	if out.Item == nil {
		return nil, out, notFound(what)
	}
	row, err := rowOf(k, key, out.Item)
	switch {
	case err != nil:
		return nil, out, fmt.Errorf("%s: %w", what, err)
	case !k.Upsert && expired(k.Expires(row), s.now()):
		return nil, out, notFound(what)
	}
	return row, out, nil
}

// GetMany reads many rows, consistently and in any order. Missing and damaged ones are left out.
func (s *Store) GetMany(ctx context.Context, k *store.Kind, keys []store.Key) ([]store.Row, error) {
	items := make([]item, len(keys))
	for i, key := range keys {
		items[i] = keyItem(k, key)
	}
	found, err := s.batchGet(ctx, "read many of "+k.Name, k.Dynamo.Name, schemaOf(k).distinct(items), true)
	if err != nil {
		return nil, err
	}
	var rows []store.Row
	for _, it := range found {
		if row := s.sound(k, it); row != nil {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// distinct are the valid keys, each once.
func (t schema) distinct(keys []item) []item {
	seen := map[string]bool{}
	var found []item
	for _, key := range keys {
		if text := t.keyText(key); t.validKey(key) && !seen[text] {
			seen[text] = true
			found = append(found, key)
		}
	}
	return found
}

// List reads a page of an index: first keys from the index, then their rows.
func (s *Store) List(ctx context.Context, q store.Query) ([]store.Row, string, error) {
	if listings[q.Index].index.name == "" {
		found, err := s.listTable(ctx, q)
		return found, "", err
	}
	if !q.All {
		return s.listPage(ctx, q)
	}
	var all []store.Row
	for q.Page.Limit = maxPage; ; {
		found, next, err := s.listPage(ctx, q)
		if err != nil {
			return nil, "", err
		}
		all = append(all, found...)
		if q.Page.After = next; next == "" {
			return all, "", nil
		}
	}
}

// Keys is List for the keys alone. It reads the index and no rows.
func (s *Store) Keys(ctx context.Context, q store.Query) ([]store.Key, error) {
	what := "list " + q.Index.Name
	search := searchFor(q)
	search.count = sizeOf(q.Page)
	found, err := s.entries(ctx, what, search)
	if err != nil {
		return nil, err
	}
	keys := make([]store.Key, len(found))
	for i, e := range found {
		if keys[i], err = keyOf(q.Index.Kind(), e.key); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return keys, nil
}

// Count counts the rows of each partition, up to atMost. It reads their entries in the index, some 40 for half a
// unit.
func (s *Store) Count(ctx context.Context, q store.Query, atMost int) ([]int, error) {
	what := "count " + q.Index.Name
	search := searchFor(q)
	counts := make([]int, len(search.partitions))
	for i, partition := range search.partitions {
		var err error
		if counts[i], err = s.countPartition(ctx, what, search, partition, atMost); err != nil {
			return nil, err
		}
	}
	return counts, nil
}
