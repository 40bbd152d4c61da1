package main

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/remuda-ci/remuda/internal/config"
)

// TestCallsToAWSAreFollowed: the clients of a controld in AWS make spans of their calls below the operation that makes them.
func TestCallsToAWSAreFollowed(t *testing.T) {
	a := newAccount(t)
	c, err := config.Load(a.configuration(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := loadAWS(t.Context(), c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	spans := tracetest.NewSpanRecorder()
	ctx, operation := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test").Start(t.Context(), "sweep cloud")
	if _, err := dynamodb.NewFromConfig(cfg).ListTables(ctx, nil); err != nil {
		t.Error(err)
	}
	if _, err := ec2.NewFromConfig(cfg).DescribeInstances(ctx, nil); err != nil {
		t.Error(err)
	}
	operation.End()
	var names []string
	for _, s := range spans.Ended() {
		names = append(names, s.Name())
		if s.Name() != "sweep cloud" && s.Parent().SpanID() != operation.SpanContext().SpanID() {
			t.Errorf("%s is not below the operation", s.Name())
		}
	}
	if want := []string{"DynamoDB.ListTables", "EC2.DescribeInstances", "sweep cloud"}; !slices.Equal(names, want) {
		t.Errorf("spans %q, want %q", names, want)
	}
}
