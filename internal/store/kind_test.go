package store_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

// The rows grow with the design. These tests fill every attribute of every kind, so that one which is added and
// forgotten in a normal form is found.

func TestNormalForms(t *testing.T) {
	for _, k := range store.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			testNormalForm(t, func() any { return k.New(store.Key{}) }, k.Copy)
		})
	}
	t.Run("report", func(t *testing.T) { testNormalForm(t, empty[lifecycle.Report], untyped(store.NormalizeReport)) })
	t.Run("event", func(t *testing.T) { testNormalForm(t, empty[lifecycle.Event], untyped(store.NormalizeEvent)) })
}

func empty[T any]() any { return new(T) }

func untyped[T any](normalize func(T) T) func(any) any {
	return func(row any) any { return new(normalize(*row.(*T))) }
}

// testNormalForm takes rows as pointers. An empty row has no attributes.
func testNormalForm(t *testing.T, empty func() any, normalize func(any) any) {
	full := empty()
	fill(reflect.ValueOf(full).Elem(), new(int))
	stored := normalize(full)
	if diff := cmp.Diff(full, stored); diff != "" {
		t.Errorf("storing changes the row (-want +got):\n%s", diff)
	}

	// What JSON gives back is in UTC, without a monotonic reading and with
	// memory of its own. A row that equals it to the bit is, too.
	text, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	back := empty()
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(stored, back) {
		t.Errorf("JSON changes the row:\n%#v\n%#v", stored, back)
	}
	row := reflect.ValueOf(full).Elem()
	notShared(t, row.Type().Name(), row, reflect.ValueOf(stored).Elem())

	hollowed := empty()
	hollow(reflect.ValueOf(hollowed).Elem())
	if got := normalize(hollowed); !reflect.DeepEqual(got, empty()) {
		t.Errorf("a row with empty lists and zero times in another zone: got %#v, want the zero one", got)
	}
}

// TestKinds holds the declarations against each other: what tells rows of one table apart, and what names them.
func TestKinds(t *testing.T) {
	taken := map[string]string{}
	for i, k := range store.Kinds {
		if k.ID != i {
			t.Errorf("kind %s has ID %d, want %d", k.Name, k.ID, i)
		}
		for _, place := range []string{"kind " + k.Name, "sql " + k.SQL.Name + " " + k.SQL.Prefix, "dynamo " + k.Dynamo.Name + " " + k.Dynamo.Prefix} {
			if other, ok := taken[place]; ok {
				t.Errorf("kinds %s and %s are both %q", other, k.Name, place)
			}
			taken[place] = k.Name
		}
		for _, x := range k.Indexes {
			if other, ok := taken["index "+x.Name]; ok || x.Kind() != k {
				t.Errorf("index %q of %s is also of %s", x.Name, k.Name, other)
			}
			taken["index "+x.Name] = k.Name
		}
		key := k.Key(k.New(store.Key{}))
		if k.Label(key) == "" || len(k.KeyColumns) == 0 {
			t.Errorf("kind %s has no label or no key", k.Name)
		}
	}
}

// fill gives every attribute a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			elsewhere := time.FixedZone("elsewhere", 2*60*60)
			v.Set(reflect.ValueOf(time.Now().Add(time.Duration(*n)).In(elsewhere)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic("an attribute of a type that the stores do not know: " + v.Kind().String())
	}
}

// hollow gives lists no elements, and times no moment but a zone.
func hollow(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 1))
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Time{}.In(time.FixedZone("elsewhere", 2*60*60))))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			hollow(v.Field(i))
		}
	}
}

// notShared finds memory that both rows point to.
func notShared(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Pointer:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		notShared(t, path, a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		for i := range a.Len() {
			notShared(t, fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
		}
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range a.NumField() {
			notShared(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	}
}
