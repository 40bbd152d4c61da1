package tracing_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
	"github.com/remuda-ci/remuda/internal/tracing"
	"github.com/remuda-ci/remuda/internal/tracing/collectortest"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// oneRun has a system with this configuration serve a run, and stops it.
func oneRun(t *testing.T, config string) {
	t.Helper()
	ctx, dir, log := t.Context(), t.TempDir(), &local.Log{}
	path := filepath.Join(dir, "controld.yaml")
	check(t, os.WriteFile(path, []byte(config), 0o600))
	s, err := local.Start(ctx, local.Options{Bin: testrun.System.Dir(t), StateDir: filepath.Join(dir, "state"), Config: path, Stderr: log})
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	stop := sync.OnceValue(s.Stop)
	defer func() { _ = stop() }()
	_, err = s.Fleet.Provision(ctx, &remudav1.ProvisionRequest{Repository: "acme/shop", RunId: "7001", RequestId: "a", Timeout: durationpb.New(5 * time.Minute)})
	check(t, err)
	_, err = s.GitHub.StartRun(ctx, "acme/shop", "7001", "on: push\njobs:\n  work:\n    runs-on: \"${{ github.run_id }}\"\n    steps:\n      - run: 'true'\n")
	check(t, err)
	if run, err := s.GitHub.WaitRun(ctx, "7001", nil); err != nil || run.Conclusion != "success" {
		t.Fatalf("the run came out as %q: %v", run.Conclusion, err)
	}
	_, err = s.Fleet.Release(ctx, &remudav1.ReleaseRequest{Repository: "acme/shop", RunId: "7001", Wait: true})
	check(t, err)
	check(t, stop()) // it sends what waits to be sent
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestATraceOfARun: what was done for a run is one trace, whose id follows from the run, with the calls to GitHub that were made for it.
func TestATraceOfARun(t *testing.T) {
	t.Parallel()
	c := collectortest.Start(t, testrun.Collector.Dir(t))
	oneRun(t, "tracing: {endpoint: \""+c.Endpoint+"\"}\n")
	spans := c.Spans(t, 0)
	of, _ := tracing.OfRun("7001", 1)
	got := map[string]bool{} // each with its parent
	ids := map[string]string{}
	for _, span := range spans {
		ids[span.SpanID] = span.Name
	}
	for _, span := range spans {
		name := span.Name
		if strings.HasPrefix(name, "POST ") {
			name = "POST" // to the stand-in, whose port is another each time
		}
		if span.TraceID == of.TraceID().String() {
			parent := ids[span.ParentSpanID]
			if span.ParentSpanID == of.SpanID().String() {
				parent = "the run"
			}
			got[name+" of "+parent] = true
		}
	}
	for _, want := range []string{"provision of the run", "host becomes ready of the run", "release of the run", "POST of provision", "POST of release"} {
		if !got[want] {
			t.Errorf("there is no %s: the trace of the run is %v", want, got)
		}
	}
	for _, name := range []string{"remuda.v1.FleetService/Provision", "remuda.v1.FleetService/Release"} {
		call, linked := collectortest.Find(t, spans, name), false
		for _, span := range spans {
			for _, link := range span.Links {
				linked = linked || link.SpanID == call.SpanID && span.TraceID == of.TraceID().String()
			}
		}
		if !linked {
			t.Errorf("no operation of the run has a link to the call %s", name)
		}
	}
	for _, span := range spans {
		if strings.HasPrefix(span.Name, "grpc.health") {
			t.Errorf("a health check has a span: %s", span.Name)
		}
	}
	if sweep := collectortest.Find(t, spans, "sweep due"); sweep.TraceID == of.TraceID().String() {
		t.Error("a sweep is in the trace of the run")
	}
}
