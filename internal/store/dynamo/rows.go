package dynamo

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

// schemaOf is the table of a kind.
func schemaOf(k *store.Kind) schema {
	return schemas[slices.IndexFunc(schemas, func(t schema) bool { return t.name == k.Dynamo.Name })]
}

// keyItem is the key of a row in its table: all parts of it in the one attribute or, where the table has a sort
// key, the last part in that.
func keyItem(k *store.Kind, key store.Key) item {
	t, parts := schemaOf(k), k.Texts(key)
	it := item{}
	if t.sort != "" {
		last := len(parts) - 1
		it[t.sort], parts = text(parts[last]), parts[:last]
	}
	it[t.hash] = text(k.Dynamo.Prefix + strings.Join(parts, "/"))
	return it
}

// keyText is an item's key in its table, as one text that sorts.
func (t schema) keyText(it item) string {
	if t.sort == "" {
		return textOf(it, t.hash)
	}
	return textOf(it, t.hash) + " " + textOf(it, t.sort)
}

// validKey reports whether an item may have the key: no attribute of it can be empty.
func (t schema) validKey(key item) bool {
	return textOf(key, t.hash) != "" && (t.sort == "" || textOf(key, t.sort) != "")
}

// itemOf is the row as it is stored, with the attributes that its key and its indexes need.
func itemOf(k *store.Kind, row store.Row) (item, error) {
	it, err := attributesIn(k, row)
	if err != nil {
		return nil, err
	}
	maps.Copy(it, keyItem(k, k.Key(row)))
	for _, x := range k.Indexes {
		maps.Copy(it, listings[x].attributes(row, schemaOf(k).keyText(it)))
	}
	if r, ok := row.(*lifecycle.Record); ok && !r.PooledAt.IsZero() {
		it[nextRunnerName] = text(r.NextRunnerName())
	}
	return it, nil
}

// attributesIn are the row's own, the large ones compressed.
func attributesIn(k *store.Kind, row store.Row) (item, error) {
	compressed := item{}
	if len(k.Large) > 0 {
		row = k.Copy(row)
	}
	for _, large := range k.Large {
		field := large.Field(row)
		small, err := compress(field, large.Limit)
		if err != nil {
			return nil, fmt.Errorf("encode attribute %s: %w", large.Name, err)
		}
		if small != nil {
			compressed[large.Name] = &types.AttributeValueMemberB{Value: small}
		}
		reflect.ValueOf(field).Elem().SetZero()
	}
	it, err := encode(row, k.Expires(row))
	if err != nil {
		return nil, err
	}
	maps.Copy(it, compressed)
	return it, nil
}

// rowOf makes a row of an item, which it changes. The key is for a kind whose rows do not have it as an attribute.
func rowOf(k *store.Kind, key store.Key, it item) (store.Row, error) {
	row := k.New(key)
	compressed := item{}
	for _, large := range k.Large {
		if value, ok := it[large.Name]; ok {
			compressed[large.Name] = value
			delete(it, large.Name)
		}
	}
	if k.Dynamo.Name == leases && k.Dynamo.Prefix != "" {
		delete(it, leaseName) // which has the prefix of the kind
	}
	restoreExpiry(it)
	if err := decodeInto(it, row, func() any { return k.New(key) }); err != nil {
		return nil, err
	}
	for _, large := range k.Large {
		if value, ok := compressed[large.Name]; ok && !expand(value, large.Field(row), large.Limit) {
			return nil, damagedError{large.Name}
		}
	}
	return k.Copy(row), nil
}

// compress makes a text, or a list as JSON, small; an empty one is nil. What would be too large to be read again is
// an error.
func compress(field any, limit int) ([]byte, error) {
	if reflect.ValueOf(field).Elem().Len() == 0 {
		return nil, nil
	}
	var plain []byte
	if s, ok := field.(*string); ok {
		plain = []byte(*s)
	} else {
		var err error
		if plain, err = json.Marshal(field); err != nil {
			return nil, err
		}
	}
	if len(plain) > limit {
		return nil, fmt.Errorf("it has %d bytes, at most %d can be read again", len(plain), limit)
	}
	var small bytes.Buffer
	w, err := flate.NewWriter(&small, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	return small.Bytes(), err
}

// expand reads what compress made into the field, and reports whether it could. It reads no more than limit.
func expand(value types.AttributeValue, field any, limit int) bool {
	small, ok := value.(*types.AttributeValueMemberB)
	if !ok {
		return false
	}
	r := io.LimitReader(flate.NewReader(bytes.NewReader(small.Value)), int64(limit)+1)
	if s, ok := field.(*string); ok {
		plain, err := io.ReadAll(r)
		*s = string(plain)
		return err == nil && len(plain) <= limit
	}
	return json.NewDecoder(r).Decode(field) == nil
}

// decodeInto makes a row of an item. The error says which attribute is wrong and
// nothing of what is in it, which may be a secret. New makes another empty row.
func decodeInto(it item, row any, empty func() any) error {
	if decoder.Decode(&types.AttributeValueMemberM{Value: it}, row) == nil {
		return nil
	}
	for _, name := range attributesOf(reflect.TypeOf(row).Elem()) {
		if decoder.Decode(&types.AttributeValueMemberM{Value: item{name: orNull(it[name])}}, empty()) != nil {
			return damagedError{name}
		}
	}
	return damagedError{"?"}
}

// sound is the row of an item; nil if it is damaged, which is logged once, or has expired.
func (s *Store) sound(k *store.Kind, it item) store.Row {
	key := schemaOf(k).keyText(it)
	row, err := rowOf(k, store.Key{}, it)
	switch {
	case err != nil:
		s.logDamaged(k.Dynamo.Name, key, err)
		return nil
	case expired(k.Expires(row), s.now()):
		return nil
	}
	return row
}

var errKeys = errors.New("a key has another form")

// keyOf is the key in a key attribute, for a table that has one such.
func keyOf(k *store.Kind, text string) (key store.Key, err error) {
	rest, ok := strings.CutPrefix(text, k.Dynamo.Prefix)
	parts := strings.SplitN(rest, "/", len(k.KeyColumns))
	if !ok || len(parts) != len(k.KeyColumns) {
		return key, errKeys
	}
	copy(key[:], parts)
	return key, nil
}
