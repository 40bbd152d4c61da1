package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun"
	"github.com/remuda-ci/remuda/internal/tracing"
	"github.com/remuda-ci/remuda/internal/tracing/collectortest"
)

func TestMain(m *testing.M) {
	if to := os.Getenv(stepVariable); to != "" {
		if err := sendStep(to); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	testrun.Collector.Remove()
	testrun.System.Remove()
	os.Exit(code)
}

// TestOfRun has the ids by the commands that docs/traces.md gives a step of a job.
func TestOfRun(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"t | cut -c 1-32", "s | cut -c 17-32"} {
		out, err := exec.CommandContext(t.Context(), "bash", "-c",
			`hash() { printf %s "$GITHUB_RUN_ID$GITHUB_RUN_ATTEMPT$1" | sha256sum; }; GITHUB_RUN_ID=9000000001 GITHUB_RUN_ATTEMPT=2; hash `+suffix).Output()
		if err != nil {
			t.Fatal(err)
		}
		of, ok := tracing.OfRun("9000000001", 2)
		if got := of.TraceID().String() + " " + of.SpanID().String(); !ok || !strings.Contains(got, strings.TrimSpace(string(out))) {
			t.Errorf("the ids are %s, and the command gives %s", got, out)
		}
	}
	if again, _ := tracing.OfRun("9000000001", 1); again.TraceID().String() == "" || again.TraceID() == first(tracing.OfRun("9000000001", 2)).TraceID() {
		t.Error("two attempts have one trace")
	}
	for _, run := range []string{"", "turn:jobs:9", "-1", "1x", "99999999999999999999"} {
		if _, ok := tracing.OfRun(run, 1); ok {
			t.Errorf("%q is a run", run)
		}
	}
	if _, ok := tracing.OfRun("1", 0); ok {
		t.Error("attempt 0 is one")
	}
}

func first[T any](v T, _ bool) T { return v }

// begin begins to send spans to a collector.
func begin(t *testing.T, c *collectortest.Collector, change func(*tracing.Options)) *tracing.Tracing {
	t.Helper()
	o := tracing.Options{Endpoint: c.Endpoint, Sample: 1, Version: "1.0.0", Replica: "here", Log: hclog.NewNullLogger()}
	if change != nil {
		change(&o)
	}
	f, err := tracing.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// end sends what waits.
func end(t *testing.T, f *tracing.Tracing) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := f.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

var run = fleet.Subject{Name: "provision", Repository: "acme/app", RunID: "9000000001", RunAttempt: 2, RequestID: "q1", Pool: "default"}

// TestOneTrace has an operation, a stretch of time and a call in the trace of their run, and an operation of no run in another.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	c := collectortest.Start(t, testrun.Collector.Dir(t))
	f := begin(t, c, nil)
	hub := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Traceparent") != "" {
			t.Error("GitHub gets the id of a trace")
		}
	}))
	defer hub.Close()
	call := func(ctx context.Context) {
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, hub.URL+"/x?token=s3cret", nil)
		request.Header.Set("Authorization", "Bearer s3cret")
		response, err := tracing.Transport(http.DefaultTransport).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	began := time.Now()
	operations := f.Operations()
	call(t.Context()) // of no operation
	ctx, ended := operations.Begin(t.Context(), run)
	call(ctx)
	ended(nil)
	operations.Past(fleet.Subject{Name: "host becomes ready", RunID: run.RunID, RunAttempt: 2, InstanceID: "i-1"}, began.Add(-time.Minute), began)
	_, ended = operations.Begin(t.Context(), fleet.Subject{Name: "sweep due"})
	ended(errors.New("the store is away"))
	end(t, f)
	of, _ := tracing.OfRun("9000000001", 2)
	spans := c.Spans(t, 4)
	for _, s := range spans {
		want := map[string]bool{"provision": true, "host becomes ready": true, "POST " + strings.TrimPrefix(hub.URL, "http://"): true}[s.Name]
		if got := s.TraceID == of.TraceID().String(); got != want {
			t.Errorf("%s is in trace %s, that of the run is %s", s.Name, s.TraceID, of.TraceID())
		}
		if strings.Contains(fmt.Sprint(s.Attributes), "Bearer") {
			t.Errorf("%s has a secret: %v", s.Name, s.Attributes)
		}
	}
	provision := collectortest.Find(t, spans, "provision")
	if provision.ParentSpanID != of.SpanID().String() {
		t.Errorf("its parent is %s, want that of the run, %s", provision.ParentSpanID, of.SpanID())
	}
	if diff := cmp.Diff(map[string]string{
		"vcs.repository.name": "acme/app", "cicd.pipeline.run.id": "9000000001", "remuda.run.attempt": "2", "remuda.request.id": "q1", "remuda.pool": "default",
	}, provision.Texts()); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if ready := collectortest.Find(t, spans, "host becomes ready"); ready.Length() != time.Minute {
		t.Errorf("it took %s", ready.Length())
	}
	if sweep := collectortest.Find(t, spans, "sweep due"); sweep.Status.Code != collectortest.StatusError || sweep.Texts()["remuda.error"] != "the store is away" {
		t.Errorf("a sweep that failed is %+v", sweep)
	}
}

// TestWhatIsNoFailure: hosts that are short are an answer, and so is a release while a caller waits.
func TestWhatIsNoFailure(t *testing.T) {
	t.Parallel()
	c := collectortest.Start(t, testrun.Collector.Dir(t))
	f := begin(t, c, nil)
	for _, err := range []error{&fleet.ShortError{}, fmt.Errorf("wait: %w", &fleet.ReleasedError{}), context.Canceled} {
		_, ended := f.Operations().Begin(t.Context(), run)
		ended(err)
	}
	end(t, f)
	for _, s := range c.Spans(t, 3) {
		if s.Status.Code == collectortest.StatusError || s.Texts()["remuda.error"] == "" {
			t.Errorf("%+v", s)
		}
	}
}

// TestSample: a share of traces is sent, and the same by every process.
func TestSample(t *testing.T) {
	t.Parallel()
	c := collectortest.Start(t, testrun.Collector.Dir(t))
	const runs = 400
	for range 2 {
		f := begin(t, c, func(o *tracing.Options) { o.Sample = 0.25 })
		for i := range runs {
			_, ended := f.Operations().Begin(t.Context(), fleet.Subject{Name: "provision", RunID: fmt.Sprint(i), RunAttempt: 1})
			ended(nil)
		}
		end(t, f)
	}
	sent := map[string]int{}
	for _, s := range c.Spans(t, 0) {
		sent[s.TraceID]++
	}
	if n := len(sent); n < runs/8 || n > runs/2 {
		t.Errorf("%d of %d traces are sent", n, runs)
	}
	for id, n := range sent {
		if n != 2 {
			t.Errorf("trace %s is sent by %d of 2 processes", id, n)
		}
	}
}

// TestHeaders go with the spans.
func TestHeaders(t *testing.T) {
	t.Parallel()
	got := make(chan []string, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		got <- md.Get("x-key")
		return status.Error(codes.InvalidArgument, "this one takes none")
	}))
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	f, err := tracing.New(t.Context(), tracing.Options{
		Endpoint: "http://" + listener.Addr().String(), Sample: 1, Log: hclog.NewNullLogger(), Headers: map[string]lifecycle.Secret{"x-key": "s3cret"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, ended := f.Operations().Begin(t.Context(), run)
	ended(nil)
	end(t, f)
	if key := <-got; !slices.Equal(key, []string{"s3cret"}) {
		t.Errorf("the header is %q", key)
	}
}

// TestNothingIsFollowed without tracing.
func TestNothingIsFollowed(t *testing.T) {
	t.Parallel()
	var f *tracing.Tracing
	if f.Operations() != nil || f.RPCs() != nil || f.Close(t.Context()) != nil {
		t.Error("something is followed")
	}
}

// TestEndpointsThatAreNone are refused.
func TestEndpointsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"", "collector:4317", "://"} {
		if _, err := tracing.New(t.Context(), tracing.Options{Endpoint: endpoint, Sample: 1}); err == nil {
			t.Errorf("%q is one", endpoint)
		}
	}
}
