package page_test

import (
	"slices"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/remuda-ci/remuda/internal/page"
)

// What a page and a read ask controld has spans, as a call by gRPC has.
func TestSpans(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	w := newWorld(t, func(*page.Options) {})
	w.serve(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))), func(*page.Options) {})
	w.see("waiting")
	w.post(here(), "ListBudgets", "{}")
	w.post(here(), "GetInstance", `{"instanceId": "i-unknown"}`)
	var names []string
	for _, s := range spans.Ended() {
		names = append(names, s.Name())
		if failed := s.Status().Code == codes.Error; failed { // an unknown host is no failure of the server
			t.Errorf("%s has failed: %s", s.Name(), s.Status().Description)
		}
	}
	if want := []string{"remuda.v1.FleetService/ListWaiting", "remuda.v1.FleetService/ListBudgets", "remuda.v1.FleetService/GetInstance"}; !slices.Equal(names, want) {
		t.Errorf("the spans are %v, want %v", names, want)
	}
}
