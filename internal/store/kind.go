package store

import (
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Key is the key of a row within its kind. Parts that the kind does not use are empty.
type Key [3]string

// Row is a pointer to a row: *lifecycle.Record for Instances.
type Row = any

// Spec is the declaration of a kind whose rows are of type T.
type Spec[T any] struct {
	// Name is in metrics, errors and dumps: "instance".
	Name string
	// Label names a row in errors; default: Name and the last part of the key.
	Label func(Key) string

	Key func(*T) Key
	// KeyColumns name the parts of the key.
	KeyColumns []string
	// NumberKey says that the key is a decimal number, of one width so that it sorts.
	NumberKey bool

	// Version is the row's own: 1 when it is created, and one more with each update.
	Version func(*T) *int64
	// Upsert kinds have no create: an update of version 0 writes the first row. Rows that have expired and are
	// still there are read like others, since the next write needs their version.
	Upsert bool
	// Blank is the row, of version 0, that a read returns where there is none; nil: that is ErrNotFound.
	Blank func(Key) T

	// Expires is when the row may be removed; nil or zero: never.
	Expires func(*T) time.Time
	// Columns are what the indexes go by, beside the key.
	Columns []Column[T]
	Indexes []*Index

	SQL    Table
	Dynamo Table
	// Large are the attributes that DynamoDB gets compressed, since a write is paid for by the KB.
	Large []Large[T]
}

// Table is where a database keeps a kind.
type Table struct {
	Name string
	// Prefix begins the keys of the kind. It keeps the kinds apart that share a table.
	Prefix string
}

// Column is an attribute that an index goes by.
type Column[T any] struct {
	Name string
	Of   func(*T) Value
}

// Large is an attribute that may have many KB.
type Large[T any] struct {
	// Name is the attribute's in JSON.
	Name string
	// Field points to it: to a string, or to a list, which is stored as JSON.
	Field func(*T) any
	// Limit is how many bytes it has at most, before compression. Compressed data of unknown origin may expand
	// to any size, so reading stops there.
	Limit int
}

// Value is what a row has in a column: a text or a time. A row with a null in one of an index's columns is not in
// that index.
type Value struct {
	Null   bool
	IsTime bool
	Text   string
	Time   time.Time
}

// TextValue is never null.
func TextValue(s string) Value { return Value{Text: s} }

// TextIf is null unless ok.
func TextIf(ok bool, s string) Value { return Value{Null: !ok, Text: s} }

// TimeValue is never null.
func TimeValue(t time.Time) Value { return Value{IsTime: true, Time: t} }

// TimeIf is null unless ok.
func TimeIf(ok bool, t time.Time) Value { return Value{IsTime: true, Null: !ok, Time: t} }

// Kind is a declared kind as the databases see it: rows are pointers of a type that they need not know.
type Kind struct {
	// ID is the position in Kinds.
	ID         int
	Name       string
	KeyColumns []string
	NumberKey  bool
	Upsert     bool
	Columns    []string
	Indexes    []*Index
	SQL        Table
	Dynamo     Table
	Large      []LargeField

	Label   func(Key) string
	Key     func(Row) Key
	Version func(Row) *int64
	// Expires is zero for a row that stays; Expiring says whether rows of the kind may expire at all.
	Expires  func(Row) time.Time
	Expiring bool
	// New returns an empty row, or for a kind with blank rows the blank one of the key.
	New func(Key) Row
	// Copy returns the row in its normal form; see normalizer. Clone is Copy for a row that is in its normal form.
	Copy  func(Row) Row
	Clone func(Row) Row
	// Value is what the row has in the column of that position.
	Value func(Row, int) Value
}

// LargeField is Large with the type of the rows removed.
type LargeField struct {
	Name  string
	Field func(Row) any
	Limit int
}

// KindOf is a kind with the type of its rows.
type KindOf[T any] struct {
	*Kind
	spec Spec[T]
	// normalize gives a row its normal form, in place.
	normalize func(*T)
}

// Kinds are all kinds, as declared.
var Kinds []*Kind

// define declares a kind. It panics on a declaration that contradicts itself.
func define[T any](spec Spec[T]) KindOf[T] {
	normalize, own := inPlace[T](true), inPlace[T](false)
	k := &Kind{
		ID: len(Kinds), Name: spec.Name, KeyColumns: spec.KeyColumns, NumberKey: spec.NumberKey, Upsert: spec.Upsert,
		Indexes: spec.Indexes, SQL: spec.SQL, Dynamo: spec.Dynamo,
		Label: spec.Label, Expiring: spec.Expires != nil,
		Key:     func(r Row) Key { return spec.Key(r.(*T)) },
		Version: func(r Row) *int64 { return spec.Version(r.(*T)) },
		Expires: func(r Row) time.Time {
			if spec.Expires == nil {
				return time.Time{}
			}
			return spec.Expires(r.(*T))
		},
		New: func(key Key) Row {
			if spec.Blank == nil {
				return new(T)
			}
			blank := spec.Blank(key)
			return &blank
		},
		Copy: func(r Row) Row {
			row := *r.(*T)
			normalize(&row)
			return &row
		},
		Clone: func(r Row) Row {
			row := *r.(*T)
			own(&row)
			return &row
		},
		Value: func(r Row, i int) Value { return spec.Columns[i].Of(r.(*T)) },
	}
	if k.Label == nil {
		last := len(spec.KeyColumns) - 1
		k.Label = func(key Key) string { return k.Name + " " + key[last] }
	}
	for _, column := range spec.Columns {
		k.Columns = append(k.Columns, column.Name)
	}
	for _, large := range spec.Large {
		k.Large = append(k.Large, LargeField{large.Name, func(r Row) any { return large.Field(r.(*T)) }, large.Limit})
	}
	for _, x := range k.Indexes {
		x.resolve(k)
	}
	Kinds = append(Kinds, k)
	return KindOf[T]{k, spec, normalize}
}

// Index is an order of the rows of a kind, or of some of them: those that have a value in each of its columns.
type Index struct {
	// Name is in page tokens and errors: "instances by run".
	Name string
	// By are the columns, or parts of the key, by which rows are looked up.
	By []string
	// Order is the column of times in whose order the rows are; empty: they are in the order of their keys. Rows
	// of equal times are in the order of their keys.
	Order string
	// Prefix begins the names of the index's partitions in DynamoDB. It keeps the kinds apart that share a table.
	Prefix string

	kind  *Kind
	by    []int // positions of columns; -1-i is part i of the key
	order int
	tail  []int // the parts of the key that By does not have
}

// Due is the name of the column with the time at which a row is to be looked at.
const Due = "due_at"

func (x *Index) resolve(k *Kind) {
	x.kind, x.order = k, -1
	for _, name := range x.By {
		if part := slices.Index(k.KeyColumns, name); part >= 0 {
			x.by = append(x.by, -1-part)
		} else {
			x.by = append(x.by, k.position(name))
		}
	}
	if x.Order != "" {
		x.order = k.position(x.Order)
	}
	for part, name := range k.KeyColumns {
		if !slices.Contains(x.By, name) {
			x.tail = append(x.tail, part)
		}
	}
}

func (k *Kind) position(column string) int {
	i := slices.Index(k.Columns, column)
	if i < 0 {
		panic("store: kind " + k.Name + " has no column " + column)
	}
	return i
}

// Kind is the kind whose rows the index orders.
func (x *Index) Kind() *Kind { return x.kind }

// Tail are the positions in the key that order rows of equal times: those which By leaves open.
func (x *Index) Tail() []int { return x.tail }

// Partition are the values of a row in the columns of By; false: the row is not in the index.
func (x *Index) Partition(row Row) ([]string, bool) {
	values := make([]string, len(x.by))
	for i := range x.by {
		v := x.value(row, i)
		if v.Null {
			return nil, false
		}
		values[i] = v.Text
	}
	return values, x.order < 0 || !x.kind.Value(row, x.order).Null
}

// At is the time by which the row is ordered; zero for an index without such.
func (x *Index) At(row Row) time.Time {
	if x.order < 0 {
		return time.Time{}
	}
	return x.kind.Value(row, x.order).Time
}

func (x *Index) value(row Row, i int) Value {
	if x.by[i] < 0 {
		return TextValue(x.kind.Key(row)[-1-x.by[i]])
	}
	return x.kind.Value(row, x.by[i])
}

// Query asks for rows of an index.
type Query struct {
	// Op is the operation's name in metrics: "instances_of_run".
	Op    string
	Index *Index
	// Partitions are those to read, each with a value for each column of Index.By. An index without By has one.
	Partitions [][]string
	// UpTo is the last time in the order; zero: no end.
	UpTo time.Time
	// From is where the last parts of the keys begin, for an index that is in their order; empty: at the first.
	From string
	// Where narrows the rows further.
	Where []Match
	// Stale allows rows that are not the newest: they are shown to people, or the write that follows has a condition.
	Stale bool
	// Newest turns the order round: one page, which begins with the last row. No page follows it.
	Newest bool
	// All asks for every row, whatever Page says. Strict makes a damaged row an error; otherwise it is left out.
	All, Strict bool
	Page        lifecycle.PageOf
}

// Match holds for a row that has one of the texts in a column.
type Match struct {
	Column string
	Texts  []string
}

// Size is how many rows a page has at most.
func (q Query) Size() int {
	if q.All {
		return maxRows
	}
	return q.Page.Size()
}

// maxRows is more than a database has.
const maxRows = 1 << 40

// Matches reports whether the row is one that the query asks for, wherever its page begins.
func (q Query) Matches(row Row) bool {
	x := q.Index
	if x.order >= 0 {
		if v := x.kind.Value(row, x.order); v.Null || !q.UpTo.IsZero() && v.Time.After(q.UpTo) {
			return false
		}
	}
	if len(x.by) > 0 && !slices.ContainsFunc(q.Partitions, func(of []string) bool { return x.holds(row, of) }) {
		return false
	}
	if q.From != "" && x.kind.Key(row)[len(x.kind.KeyColumns)-1] < q.From {
		return false
	}
	for _, m := range q.Where {
		if v := x.kind.Value(row, x.kind.position(m.Column)); v.Null || !slices.Contains(m.Texts, v.Text) {
			return false
		}
	}
	return true
}

func (x *Index) holds(row Row, partition []string) bool {
	for i := range x.by {
		if v := x.value(row, i); v.Null || v.Text != partition[i] {
			return false
		}
	}
	return true
}

// Texts are the parts of the key that the kind uses.
func (k *Kind) Texts(key Key) []string { return key[:len(k.KeyColumns)] }

// String is the key of a row as one text, for logs.
func (k *Kind) String(key Key) string { return strings.Join(k.Texts(key), " ") }
