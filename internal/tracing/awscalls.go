package tracing

import (
	"cmp"
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/remuda-ci/remuda/internal/aws"
)

// AWS follows the calls of an operation to AWS, each with all its tries: service, operation, region and request id, and nothing of what they say.
// A call of no operation that is followed has no span. It does what otelaws of opentelemetry-go-contrib does without a look into requests, for which that needs the clients of S3 and SNS.
func AWS(cfg *sdk.Config) {
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(awsCalls{}, middleware.After)
	})
}

// noCode is the type of an error that is none of AWS, as when no answer came. The name is that of OpenTelemetry's conventions.
const noCode = "_OTHER"

type awsCalls struct{}

// ID implements middleware.InitializeMiddleware.
func (awsCalls) ID() string { return "RemudaTracing" }

// HandleInitialize implements middleware.InitializeMiddleware.
func (awsCalls) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	service, operation := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	ctx, span := trace.SpanFromContext(ctx).TracerProvider().Tracer(tracerName).Start(ctx, service+"."+operation, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("rpc.system.name", "aws-api"), attribute.String("rpc.method", service+"/"+operation),
		attribute.String("cloud.region", awsmiddleware.GetRegion(ctx)),
	))
	defer span.End()
	out, metadata, err := next.HandleInitialize(ctx, in)
	if id, ok := awsmiddleware.GetRequestIDMetadata(metadata); ok {
		span.SetAttributes(attribute.String("aws.request_id", id))
	}
	if err != nil {
		code := cmp.Or(aws.Code(err), noCode)
		span.SetAttributes(attribute.String("error.type", code))
		span.SetStatus(codes.Error, code)
	}
	return out, metadata, err
}
