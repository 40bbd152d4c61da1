package tracing

import (
	"crypto/sha256"
	"strconv"

	"go.opentelemetry.io/otel/trace"
)

// OfRun is the span of an attempt of a workflow run, to which all spans of the run belong. Its ids follow from the numbers of the run and of the
// attempt as those of the collector's githubreceiver do (opentelemetry-collector-contrib, receiver/githubreceiver/trace_event_handling.go:
// newTraceID and newParentSpanID), so that the spans of Remuda, those of the receiver and those of a job's own steps are one trace. It reports false
// for what GitHub has no number for, as the slot of a job pool.
func OfRun(runID string, attempt int) (trace.SpanContext, bool) {
	if _, err := strconv.ParseUint(runID, 10, 63); err != nil || attempt < 1 {
		return trace.SpanContext{}, false
	}
	run := runID + strconv.Itoa(attempt)
	of, span := sha256.Sum256([]byte(run+"t")), sha256.Sum256([]byte(run+"s"))
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(of[:16]), SpanID: trace.SpanID(span[8:16]), TraceFlags: trace.FlagsSampled, Remote: true,
	}), true
}
