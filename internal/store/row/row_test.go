package row_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/store/row"
)

// The rows grow with the design. These tests fill every attribute there is, so
// that one which is added and forgotten here is found.

func TestRows(t *testing.T) {
	t.Run("record", func(t *testing.T) { testRow(t, row.Record) })
	t.Run("report", func(t *testing.T) { testRow(t, row.Report) })
	t.Run("request", func(t *testing.T) { testRow(t, row.Request) })
	t.Run("event", func(t *testing.T) { testRow(t, row.Event) })
	t.Run("job", func(t *testing.T) { testRow(t, row.Job) })
	t.Run("webhook", func(t *testing.T) { testRow(t, row.Webhook) })
	t.Run("turns", func(t *testing.T) { testRow(t, row.Turns) })
	t.Run("service", func(t *testing.T) { testRow(t, row.Service) })
	t.Run("work job", func(t *testing.T) { testRow(t, row.WorkJob) })
	t.Run("worker", func(t *testing.T) { testRow(t, row.Worker) })
	t.Run("service", func(t *testing.T) { testRow(t, row.Service) })
}

func testRow[T any](t *testing.T, store func(T) T) {
	var full T
	fill(reflect.ValueOf(&full).Elem(), new(int))
	stored := store(full)
	if diff := cmp.Diff(full, stored); diff != "" {
		t.Errorf("storing changes the row (-want +got):\n%s", diff)
	}

	// What JSON gives back is in UTC, without a monotonic reading and with
	// memory of its own. A row that equals it to the bit is, too.
	text, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(stored, back) {
		t.Errorf("JSON changes the row:\n%#v\n%#v", stored, back)
	}
	notShared(t, reflect.TypeFor[T]().Name(), reflect.ValueOf(full), reflect.ValueOf(stored))

	var empty T
	hollow(reflect.ValueOf(&empty).Elem())
	if got := store(empty); !reflect.DeepEqual(got, *new(T)) {
		t.Errorf("a row with empty lists and zero times in another zone: got %#v, want the zero one", got)
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
		panic("a kind of attribute that the stores do not know: " + v.Kind().String())
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
