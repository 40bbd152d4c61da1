// Package tracing sends spans of what controld does to an OpenTelemetry collector: of RPCs, of operations, and of calls to AWS and GitHub. The
// spans of an operation for a workflow run are in the trace of that run; see OfRun. Spans have names and numbers of runs, hosts and requests, and no
// secret. A collector that is away costs spans, and nothing else.
package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Options say where spans go.
type Options struct {
	// Endpoint is the address of OTLP over gRPC: https://HOST:PORT, or http on a loopback address.
	Endpoint string
	// Authorities are trusted beside those of the system, as PEM.
	Authorities []byte
	// Headers go with each batch of spans, such as the key of a service that takes them.
	Headers map[string]lifecycle.Secret
	// Sample is the share of traces that is sent, above 0 to 1. All spans of a trace are sent, or none.
	Sample float64
	// Version and Replica name this process.
	Version, Replica string
	Log              hclog.Logger
}

// Tracing follows what one process does. A nil *Tracing follows nothing.
type Tracing struct {
	provider *sdktrace.TracerProvider
}

const (
	// sendTimeout bounds one try to send a batch.
	sendTimeout = 5 * time.Second
	// maxAttribute is how many characters an attribute has at most: a batch of spans stays far below the 4 MB that a collector takes.
	maxAttribute = 1024
	// queued is how many spans wait to be sent. Those beyond are dropped: they are for people, and memory is for hosts.
	queued = 4096
)

// New begins to send spans. It makes no call, so that a collector that is away keeps no controld from starting.
func New(ctx context.Context, o Options) (*Tracing, error) {
	options, err := exporterOptions(o)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("new tracing: %w", err)
	}
	about := resource.NewSchemaless(
		attribute.String("service.name", "remuda-controld"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Replica),
	)
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxAttribute
	return &Tracing{sdktrace.NewTracerProvider(
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithResource(about),
		// By the ids of traces alone: every process comes to the same answer, and what a caller says does not count.
		sdktrace.WithSampler(sdktrace.TraceIDRatioBased(o.Sample)),
		sdktrace.WithBatcher(&reporting{SpanExporter: exporter, log: o.Log}, sdktrace.WithMaxQueueSize(queued), sdktrace.WithExportTimeout(2*sendTimeout)),
	)}, nil
}

func exporterOptions(o Options) ([]otlptracegrpc.Option, error) {
	to, err := url.Parse(o.Endpoint)
	if err != nil || to.Host == "" {
		return nil, fmt.Errorf("new tracing: want an endpoint like https://collector:4317, got %q", o.Endpoint)
	}
	headers := map[string]string{}
	for name, value := range o.Headers {
		headers[name] = value.Reveal()
	}
	options := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpoint(to.Host), otlptracegrpc.WithHeaders(headers), otlptracegrpc.WithTimeout(sendTimeout),
	}
	if to.Scheme == "http" {
		return append(options, otlptracegrpc.WithInsecure()), nil
	}
	trusted, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("new tracing: %w", err)
	}
	trusted.AppendCertsFromPEM(o.Authorities)
	return append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(&tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}))), nil
}

// Close sends what waits to be sent, until ctx ends.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// RPCs follows the calls that a gRPC server takes, except those of health checks. A caller's own trace is linked, and not continued: a caller cannot write into
// the trace of a run, nor have more spans sent.
func (t *Tracing) RPCs() stats.Handler {
	if t == nil {
		return nil
	}
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithPublicEndpoint(), otelgrpc.WithFilter(filters.Not(filters.HealthCheck())),
	)
}

// nothing sends no trace context: GitHub does not get the ids of traces.
var nothing = propagation.NewCompositeTextMapPropagator()

// Transport follows the HTTP calls of an operation. A call of no operation that is followed has no span.
func Transport(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(next, otelhttp.WithPropagators(nothing),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + r.URL.Host }))
}

// reporting logs that spans are not sent, once until they are again.
type reporting struct {
	sdktrace.SpanExporter
	log hclog.Logger

	mu   sync.Mutex
	away bool
}

// ExportSpans implements sdktrace.SpanExporter. Spans that cannot be sent are lost, and the error goes no further.
func (r *reporting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && !r.away:
		r.log.Warn("spans not sent: the collector does not take them", logkey.Count, len(spans), logkey.Error, err)
	case err == nil && r.away:
		r.log.Info("spans are sent again")
	}
	r.away = err != nil
	return nil
}
