package snapshot

import (
	"reflect"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// removed is written for a secret. That there was one may matter to a decision.
const removed lifecycle.Secret = "removed"

var secretType = reflect.TypeFor[lifecycle.Secret]()

// redact removes the secrets of a row, wherever they are in it. row points to a copy that shares nothing with the store.
func redact(row any) { redactValue(reflect.ValueOf(row)) }

func redactValue(v reflect.Value) {
	switch {
	case !v.IsValid() || v.IsZero():
	case v.Type() == secretType:
		v.SetString(removed.Reveal())
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
		redactValue(v.Elem())
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			redactValue(v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				redactValue(v.Field(i))
			}
		}
	}
}
