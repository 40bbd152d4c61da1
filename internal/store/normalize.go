package store

import (
	"reflect"
	"time"
)

// The normal form of a row is the form in which every store keeps it, so that each adapter gives back the same: a
// copy that shares no memory, times in UTC without a monotonic reading, and nil for an empty list (an empty value
// is a removed attribute).

// normalizer gives a value its normal form, in place.
type normalizer func(v reflect.Value)

// normalizerOf is made once for a type, from the fields that have a normal form; nil for a
// number, a text or the like. Without times it is for values that are in their normal form:
// it gives them memory of their own.
func normalizerOf(t reflect.Type, times bool) normalizer {
	switch {
	case t == reflect.TypeFor[time.Time]():
		if !times {
			return nil
		}
		return func(v reflect.Value) { setUTC(v.Addr().Interface().(*time.Time)) }
	case t.Kind() == reflect.Pointer:
		return pointerNormalizer(t.Elem(), times)
	case t == reflect.TypeFor[[]string]():
		return func(v reflect.Value) {
			list := v.Addr().Interface().(*[]string)
			*list = append([]string(nil), *list...)
		}
	case t.Kind() == reflect.Slice:
		return sliceNormalizer(t, times)
	case t.Kind() == reflect.Struct:
		return structNormalizer(t, times)
	}
	return nil
}

// inPlace is the normalizer of a type of rows. See normalizerOf for times.
func inPlace[T any](times bool) func(*T) {
	normalize := normalizerOf(reflect.TypeFor[T](), times)
	if normalize == nil {
		return func(*T) {}
	}
	return func(row *T) { normalize(reflect.ValueOf(row).Elem()) }
}

func pointerNormalizer(t reflect.Type, times bool) normalizer {
	inner := normalizerOf(t, times)
	return func(v reflect.Value) {
		if v.IsNil() {
			return
		}
		own := reflect.New(t)
		own.Elem().Set(v.Elem())
		if inner != nil {
			inner(own.Elem())
		}
		v.Set(own)
	}
}

func sliceNormalizer(t reflect.Type, times bool) normalizer {
	inner := normalizerOf(t.Elem(), times)
	return func(v reflect.Value) {
		if v.Len() == 0 {
			v.SetZero()
			return
		}
		v.Set(reflect.AppendSlice(reflect.Zero(t), v))
		for i := 0; inner != nil && i < v.Len(); i++ {
			inner(v.Index(i))
		}
	}
}

func structNormalizer(t reflect.Type, times bool) normalizer {
	type field struct {
		index     int
		normalize normalizer
	}
	var fields []field
	for i := range t.NumField() {
		if normalize := normalizerOf(t.Field(i).Type, times); normalize != nil {
			fields = append(fields, field{i, normalize})
		}
	}
	if fields == nil {
		return nil
	}
	return func(v reflect.Value) {
		for _, f := range fields {
			f.normalize(v.Field(f.index))
		}
	}
}

// setUTC makes a time one in UTC, without a monotonic reading.
func setUTC(at *time.Time) {
	if at.IsZero() {
		*at = time.Time{}
		return
	}
	*at = at.Round(0).UTC()
}
