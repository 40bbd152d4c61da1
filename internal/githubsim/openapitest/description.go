// Package openapitest holds what is said to and by GitHub, or its stand-in, against GitHub's own OpenAPI description: each request,
// each answer with its status, headers and body, and the deliveries. It is for tests alone. scripts/openapi made the description.
package openapitest

import (
	_ "embed"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

//go:embed api.github.com.json
var text []byte

// description is the part of GitHub's OpenAPI description that was taken, with the finder of its operations.
type description struct {
	doc    *openapi3.T
	router routers.Router
}

var load = sync.OnceValues(func() (*description, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("load GitHub's description: %w", err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("find GitHub's operations: %w", err)
	}
	return &description{doc, router}, nil
})

// validation are the options by which every schema is visited: all errors at once, and the formats that can be checked.
var validation = []openapi3.SchemaValidationOption{
	openapi3.MultiErrors(), openapi3.EnableFormatValidation(),
	openapi3.WithStringFormatValidator("date-time", openapi3.NewCallbackValidator(func(s string) error {
		_, err := time.Parse(time.RFC3339, s)
		return err
	})),
	openapi3.WithStringFormatValidator("uri", openapi3.NewCallbackValidator(func(s string) error {
		u, err := url.Parse(s)
		if err == nil && !u.IsAbs() {
			err = fmt.Errorf("not absolute")
		}
		return err
	})),
}

// against holds a decoded JSON value against a schema of the description, by its name.
func (d *description) against(schema string, v any) error {
	ref := d.doc.Components.Schemas[schema]
	if ref == nil {
		return fmt.Errorf("GitHub's description has no schema %s", schema)
	}
	return ref.Value.VisitJSON(v, append(validation, openapi3.VisitAsResponse())...)
}
