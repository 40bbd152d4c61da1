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
// number, a text or the like.
func normalizerOf(t reflect.Type) normalizer {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return func(v reflect.Value) { setUTC(v.Addr().Interface().(*time.Time)) }
	case t.Kind() == reflect.Pointer:
		return pointerNormalizer(t.Elem())
	case t == reflect.TypeFor[[]string]():
		return func(v reflect.Value) {
			list := v.Addr().Interface().(*[]string)
			*list = append([]string(nil), *list...)
		}
	case t.Kind() == reflect.Slice:
		return sliceNormalizer(t)
	case t.Kind() == reflect.Struct:
		return structNormalizer(t)
	}
	return nil
}

func pointerNormalizer(t reflect.Type) normalizer {
	inner := normalizerOf(t)
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

func sliceNormalizer(t reflect.Type) normalizer {
	inner := normalizerOf(t.Elem())
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

func structNormalizer(t reflect.Type) normalizer {
	type field struct {
		index     int
		normalize normalizer
	}
	var fields []field
	for i := range t.NumField() {
		if normalize := normalizerOf(t.Field(i).Type); normalize != nil {
			fields = append(fields, field{i, normalize})
		}
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
