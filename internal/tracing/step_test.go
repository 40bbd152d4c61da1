package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// stepVariable has this test binary be a tool of OpenTelemetry in a job's step: its value is the endpoint of the collector.
const stepVariable = "REMUDA_TEST_STEP_SENDS_TO"

// sendStep sends a span of a step, in the trace that TRACEPARENT names, as OpenTelemetry's libraries and tools do.
func sendStep(endpoint string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(strings.TrimPrefix(endpoint, "http://")), otlptracegrpc.WithInsecure())
	if err != nil {
		return fmt.Errorf("make an exporter: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": os.Getenv("TRACEPARENT")})
	_, span := provider.Tracer("a step").Start(ctx, "make test")
	span.End()
	return errors.Join(provider.ForceFlush(ctx), provider.Shutdown(ctx))
}
