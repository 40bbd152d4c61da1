package explore

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// value adds any value to the text: all its fields, also those that are not
// exported, since an operation's progress is in them. What an operation shares
// with others and what decides nothing (its recorder) is left out: see shared.
func (t *text) value(v any) { t.reflected(reflect.ValueOf(v)) }

var (
	driverType   = reflect.TypeFor[*op.Driver]()
	timeType     = reflect.TypeFor[time.Time]()
	recordType   = reflect.TypeFor[lifecycle.Record]()
	requestType  = reflect.TypeFor[lifecycle.Request]()
	registerType = reflect.TypeFor[lifecycle.Registration]()
)

// sharedTypes remembers what shared reports.
var sharedTypes = map[reflect.Type]bool{}

// shared reports whether a type is what operations share: the use-cases that begin them
// and their recorders, which are the structs that hold a driver.
func shared(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	is, known := sharedTypes[t]
	if !known {
		for i := range t.NumField() {
			is = is || t.Field(i).Type == driverType
		}
		sharedTypes[t] = is
	}
	return is
}

func (t *text) reflected(v reflect.Value) {
	if !v.IsValid() {
		t.add("nil")
		return
	}
	if shared(v.Type()) {
		return
	}
	switch v.Type() {
	case registerType:
		return
	case timeType:
		t.time(v.Interface().(time.Time))
		return
	case recordType:
		t.record(v.Interface().(lifecycle.Record))
		return
	case requestType:
		t.request(v.Interface().(lifecycle.Request))
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		t.reflected(v.Elem())
	case reflect.Struct:
		t.fields(v)
	case reflect.Slice:
		t.add(v.Len())
		for i := range v.Len() {
			t.reflected(v.Index(i))
		}
	case reflect.Map:
		t.entries(v)
	case reflect.Func:
		t.add(funcName(v))
	case reflect.String:
		t.add(v.String())
	case reflect.Bool:
		t.add(v.Bool())
	case reflect.Int, reflect.Int64:
		t.add(v.Int())
	default:
		panic("no text of a " + v.Type().String())
	}
}

// undecided are the fields of operations that decide nothing here: what is
// only measured, and how long to wait for the next look.
var undecided = []string{"began", "looks"}

func (t *text) fields(v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Type().Field(i); !slices.Contains(undecided, f.Name) {
			t.add(f.Name)
			t.reflected(field(v, i))
		}
	}
}

func (t *text) entries(v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		t.add(k.String())
		t.reflected(v.MapIndex(k))
	}
}

// field is a field of a struct, readable also when it is not exported.
func field(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	if f.CanInterface() || !f.CanAddr() {
		return f
	}
	return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
}

func funcName(v reflect.Value) string {
	if v.IsNil() {
		return "nil"
	}
	return runtime.FuncForPC(v.Pointer()).Name()
}

// holdsClosure reports whether an operation keeps something in a function
// literal, which cannot be looked into. Its methods are no literals.
func holdsClosure(v any) bool { return closureIn(reflect.ValueOf(v)) }

func closureIn(v reflect.Value) bool {
	if !v.IsValid() || shared(v.Type()) || v.Type() == timeType {
		return false
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return closureIn(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if closureIn(field(v, i)) {
				return true
			}
		}
	case reflect.Func:
		return !strings.HasSuffix(funcName(v), "-fm")
	}
	return false
}
