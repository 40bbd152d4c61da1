package tracing

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// away is an exporter whose collector does not answer.
type away struct {
	sdktrace.SpanExporter
	err error
}

func (a *away) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return a.err }

// TestACollectorThatIsAway is one line of the log, and another once it is back. Nothing else comes of it.
func TestACollectorThatIsAway(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	exporter := &away{err: errors.New("connection refused")}
	r := &reporting{SpanExporter: exporter, log: hclog.New(&hclog.LoggerOptions{Output: &log})}
	for range 3 {
		if err := r.ExportSpans(t.Context(), nil); err != nil {
			t.Errorf("the error goes further: %v", err)
		}
	}
	exporter.err = nil
	for range 3 {
		if err := r.ExportSpans(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	if text := log.String(); strings.Count(text, "connection refused") != 1 || strings.Count(text, "spans are sent again") != 1 {
		t.Errorf("the log is\n%s", text)
	}
}
