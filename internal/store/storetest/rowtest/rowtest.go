// Package rowtest is what the tests of every kind do to a row whose type they do not know.
package rowtest

import (
	"reflect"
	"testing"
	"time"
)

// A row has no other types of attributes than these functions look into: see TestNormalForms of package store.

var timeType = reflect.TypeFor[time.Time]()

// TimeIn is a time of a row, by its field.
func TimeIn(row any, field string) *time.Time {
	return reflect.ValueOf(row).Elem().FieldByName(field).Addr().Interface().(*time.Time)
}

// IsFull fails for an attribute without a value: one that was added to the type and forgotten in the full row would show nothing. Of a list it looks
// at the first element.
func IsFull(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch {
	case v.IsZero():
		t.Errorf("the full row has no %s", name)
	case v.Type() == timeType:
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		IsFull(t, name, v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		IsFull(t, name, v.Index(0))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			IsFull(t, name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
}

// eachTime calls fn for the times that are set.
func eachTime(v reflect.Value, fn func(*time.Time)) {
	switch {
	case v.IsZero():
	case v.Type() == timeType:
		fn(v.Addr().Interface().(*time.Time))
	case v.Kind() == reflect.Pointer:
		eachTime(v.Elem(), fn)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			eachTime(v.Index(i), fn)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			eachTime(v.Field(i), fn)
		}
	}
}

// Relocate gives the times of a row, in turn, another zone and a monotonic reading. They stay the same moments.
func Relocate(row any) {
	n := 0
	eachTime(reflect.ValueOf(row), func(at *time.Time) {
		if n++; n%2 == 0 {
			*at = at.In(time.FixedZone("elsewhere", 2*60*60))
		} else {
			now := time.Now()
			*at = now.Add(at.Sub(now))
		}
	})
}

// IsCanonical fails unless the times of a row are in UTC, and not only the same moments, and have no monotonic reading.
func IsCanonical[T any](t *testing.T, row T) {
	t.Helper()
	eachTime(reflect.ValueOf(&row), func(at *time.Time) {
		if at.Location() != time.UTC || *at != at.Round(0) {
			t.Errorf("%T has the time %v in %s, want UTC without a monotonic reading", row, *at, at.Location())
		}
	})
}

// EmptyLists has the lists of a row be empty and not nil.
func EmptyLists(row any) {
	for fields, i := reflect.ValueOf(row).Elem(), 0; i < fields.NumField(); i++ {
		if field := fields.Field(i); field.Kind() == reflect.Slice {
			field.Set(reflect.MakeSlice(field.Type(), 0, 0))
		}
	}
}

// Scribble overwrites all memory that a row refers to, and none of its own.
func Scribble(row any) { overwrite(reflect.ValueOf(row)) }

func overwrite(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			overwrite(v.Elem())
			v.Elem().SetZero()
		}
	case reflect.Slice:
		for i := range v.Len() {
			overwrite(v.Index(i))
			v.Index(i).SetZero()
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() != timeType {
				overwrite(v.Field(i))
			}
		}
	}
}
