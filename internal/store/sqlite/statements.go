package sqlite

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// statements are those of a kind that are the same for each of its rows.
type statements struct {
	// columns are all that a row has, in the order of the parameters of insert and update: the document, the
	// version, the kind's own, the expiry and the key.
	columns []string
	// key is the key of a row as one text, for logs.
	key string

	insert, update, selectOne, selectMany string
}

// statementsOf are by Kind.ID.
var statementsOf = func() (all []statements) {
	for _, k := range store.Kinds {
		all = append(all, makeStatements(k))
	}
	return all
}()

func makeStatements(k *store.Kind) statements {
	columns := slices.Concat([]string{"doc", "version"}, k.Columns)
	if k.Expiring {
		columns = append(columns, "expires_at")
	}
	var sets, parameters, isKey []string
	for i, name := range columns {
		sets = append(sets, fmt.Sprintf("%s = ?%d", name, i+1))
	}
	for i, name := range k.KeyColumns {
		isKey = append(isKey, fmt.Sprintf("%s = ?%d", name, len(columns)+i+1))
	}
	columns = append(columns, k.KeyColumns...)
	for i := range columns {
		parameters = append(parameters, fmt.Sprintf("?%d", i+1))
	}
	table, key := k.SQL.Name, strings.Join(k.KeyColumns, " || ' ' || ")
	return statements{
		columns: columns, key: key,
		insert: fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT DO NOTHING",
			table, strings.Join(columns, ", "), strings.Join(parameters, ", ")),
		update: fmt.Sprintf("UPDATE %s SET %s WHERE %s AND version = ?2 - 1",
			table, strings.Join(sets, ", "), strings.Join(isKey, " AND ")),
		selectOne: fmt.Sprintf("SELECT doc FROM %s WHERE %s = ?", table, strings.Join(k.KeyColumns, " = ? AND ")),
		selectMany: fmt.Sprintf("SELECT %s, doc FROM %s WHERE %s IN (SELECT value FROM json_each(?)) ORDER BY %s",
			key, table, k.KeyColumns[0], k.KeyColumns[0]),
	}
}

// arguments are the row as the parameters of insert and update.
func arguments(what string, k *store.Kind, row store.Row) ([]any, error) {
	// Not the pointer: JSON then copies each time of the row to ask whether it is zero.
	doc, err := json.Marshal(reflect.ValueOf(row).Elem().Interface())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	values := make([]any, 0, len(statementsOf[k.ID].columns))
	values = append(values, string(doc), *k.Version(row))
	for i := range k.Columns {
		values = append(values, argument(k.Value(row, i)))
	}
	if k.Expiring {
		values = append(values, db.Time(k.Expires(row)))
	}
	return addKey(values, k, k.Key(row)), nil
}

func argument(v store.Value) any {
	switch {
	case v.Null:
		return nil
	case v.IsTime:
		return db.Nanos(v.Time)
	}
	return v.Text
}

// keyArguments are the parts of a key as its columns have them.
func keyArguments(k *store.Kind, key store.Key) []any {
	return addKey(make([]any, 0, len(k.KeyColumns)), k, key)
}

func addKey(args []any, k *store.Kind, key store.Key) []any {
	for i := range k.KeyColumns {
		switch {
		case i == 0 && k.SQL.Prefix != "":
			args = append(args, k.SQL.Prefix+key[0])
		case i == 0 && k.NumberKey:
			args = append(args, numberOf(key[0]))
		default:
			args = append(args, key[i])
		}
	}
	return args
}

// numberOf is the number of a NumberKey: what is no number sorts before all.
func numberOf(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return math.MinInt64
	}
	return n
}

// listing is a query as a statement with its parameters.
type listing struct {
	text strings.Builder
	args []any
}

func (l *listing) add(text string, args ...any) {
	l.text.WriteString(text)
	l.args = append(l.args, args...)
}

// limited is LIMIT ? in a form in which SQLite keeps the statement as it is. It plans a statement for the very value of a bare parameter, and so
// compiles it again each time that it gets one.
const limited = " LIMIT ? + 0"

// order are the columns in whose order an index has its rows, within a partition.
func order(x *store.Index) []string {
	var columns []string
	if x.Order != "" {
		columns = append(columns, x.Order)
	}
	for _, part := range x.Tail() {
		columns = append(columns, x.Kind().KeyColumns[part])
	}
	return columns
}

// selecting is the statement that selects columns of the query's rows after a place in the index, limit at most.
// The rows of several partitions are merged by SQLite, row by row: each is in order by itself.
func selecting(columns string, q store.Query, after []any, limit int) *listing {
	l, sorted := &listing{}, strings.Join(order(q.Index), ", ")
	if len(q.Partitions) > 1 {
		columns += ", " + sorted
	}
	for i, partition := range q.Partitions {
		if i > 0 {
			l.add(" UNION ALL ")
		}
		l.add("SELECT " + columns + " FROM " + q.Index.Kind().SQL.Name + " WHERE ")
		l.addConditions(q, partition)
		l.add("("+sorted+") > (?"+strings.Repeat(", ?", len(after)-1)+")", after...)
	}
	if q.Newest {
		sorted = strings.Join(order(q.Index), " DESC, ") + " DESC"
	}
	l.add(" ORDER BY "+sorted+limited, int64(limit))
	return l
}

// addConditions adds those of a query, but not where its page begins. Each ends with AND.
func (l *listing) addConditions(q store.Query, partition []string) {
	for i, name := range q.Index.By {
		value := partition[i]
		if name == q.Index.Kind().KeyColumns[0] {
			value = q.Index.Kind().SQL.Prefix + value
		}
		l.add(name+" = ? AND ", value)
	}
	switch name := q.Index.Order; {
	case name != "" && q.UpTo.IsZero():
		l.add(name + " IS NOT NULL AND ") // or SQLite does not use an index that has only those
	case name != "":
		l.add(name+" <= ? AND ", db.Nanos(q.UpTo))
	}
	if columns := q.Index.Kind().KeyColumns; q.From != "" {
		l.add(columns[len(columns)-1]+" >= ? AND ", q.From)
	}
	for _, m := range q.Where {
		texts, _ := json.Marshal(m.Texts) // strings always marshal
		l.add(m.Column+" IN (SELECT value FROM json_each(?)) AND ", string(texts))
	}
}

// counting is the statement that finds the rows of one partition, limit at most.
func counting(q store.Query, partition []string, limit int) *listing {
	l := &listing{}
	l.add("SELECT 1 FROM " + q.Index.Kind().SQL.Name + " WHERE ")
	l.addConditions(q, partition)
	l.add("true"+limited, int64(limit))
	return l
}

func joined(columns []string) string { return strings.Join(columns, ", ") }
