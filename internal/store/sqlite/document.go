package sqlite

import (
	"errors"
	"fmt"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// decode reads the document of a row by the rules of encoding/json, in half of its time. Most of what a long listing
// costs is the decoding of its documents.
func decode(doc []byte, row any) error {
	return jsonv1.Unmarshal(doc, row)
}

// damaged says where a document stops being one of ours, and nothing of what is in it, which may be a secret.
func damaged(what string, err error) error {
	var syntax *jsonv1.SyntaxError
	var kind *jsonv1.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: damaged document: no JSON from byte %d on", what, syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("%s: damaged document: wrong type in field %s", what, kind.Field)
	}
	return fmt.Errorf("%s: damaged document", what)
}
