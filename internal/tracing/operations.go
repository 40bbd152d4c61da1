package tracing

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/remuda-ci/remuda/internal/fleet"
)

// tracerName is the scope of the spans of operations.
const tracerName = "github.com/remuda-ci/remuda"

// Operations follows the operations of a fleet.
type Operations struct{ tracer trace.Tracer }

// Operations implements fleet.Tracer; nil: nothing is followed.
func (t *Tracing) Operations() fleet.Tracer {
	if t == nil {
		return nil
	}
	return Operations{t.provider.Tracer(tracerName)}
}

// Begin implements fleet.Tracer. The operation of a run is in the trace of the run, and has a link to the call that asked for it.
func (o Operations) Begin(ctx context.Context, of fleet.Subject) (context.Context, func(error)) {
	ctx, span := o.start(ctx, of)
	return ctx, func(err error) {
		if err != nil {
			// A run that ends while it waits, and a short answer, are results. What failed is the operation in hand.
			span.SetAttributes(attribute.String("remuda.error", fleet.OneLine(err)))
		}
		if failed(err) {
			span.SetStatus(codes.Error, "it failed")
		}
		span.End()
	}
}

// Past implements fleet.Tracer.
func (o Operations) Past(of fleet.Subject, from, to time.Time) {
	_, span := o.start(context.Background(), of, trace.WithTimestamp(from))
	span.End(trace.WithTimestamp(to))
}

func (o Operations) start(ctx context.Context, of fleet.Subject, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	options = append(options, trace.WithAttributes(attributes(of)...))
	if run, ok := OfRun(of.RunID, cmp.Or(of.RunAttempt, 1)); ok {
		if asked := trace.SpanContextFromContext(ctx); asked.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: asked}))
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, run)
	}
	return o.tracer.Start(ctx, of.Name, options...)
}

// failed reports whether an operation did not do what it is for. A caller that left has no use for the answer, and that hosts are short is one.
func failed(err error) bool {
	var short *fleet.ShortError
	var released *fleet.ReleasedError
	return err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &short) && !errors.As(err, &released)
}

// attributes are what an operation is about. Those of GitHub have the names of OpenTelemetry's conventions for CI/CD.
func attributes(of fleet.Subject) (all []attribute.KeyValue) {
	for _, a := range []struct{ name, value string }{
		{"vcs.repository.name", of.Repository}, {"cicd.pipeline.run.id", of.RunID},
		{"remuda.request.id", of.RequestID}, {"remuda.pool", of.Pool}, {"remuda.instance.id", of.InstanceID},
	} {
		if a.value != "" {
			all = append(all, attribute.String(a.name, a.value))
		}
	}
	if of.RunAttempt > 0 {
		all = append(all, attribute.Int("remuda.run.attempt", of.RunAttempt))
	}
	if of.JobID != 0 {
		all = append(all, attribute.Int64("cicd.pipeline.task.run.id", of.JobID))
	}
	return all
}
