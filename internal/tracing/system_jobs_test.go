package tracing_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
	"github.com/remuda-ci/remuda/internal/tracing"
	"github.com/remuda-ci/remuda/internal/tracing/collectortest"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// jobsConfig has a job pool, webhooks and a collector.
const jobsConfig = `tracing: {endpoint: %q}
webhooks: {secret_file: %s}
log: {format: json}
pools: {default: {}, small: {jobs: {labels: [small], maximum: 1, repositories: ["acme/*"]}}}
compute: {process: {boot_delay: 1500ms}}
`

// within bounds the test; a healthy one takes seconds.
const within = 5 * time.Minute

// joining are the steps of docs/traces.md by which a job joins the trace of its run.
func joining(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/traces.md")
	check(t, err)
	block := regexp.MustCompile("(?s)```yaml\n(- run: .*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/traces.md has no step that joins the trace of a run")
	}
	return "      " + strings.ReplaceAll(strings.TrimSpace(string(block[1])), "\n", "\n      ") + "\n"
}

// stepping is a workflow of one job that joins the trace of its run. Its first attempt fails.
func stepping(t *testing.T, labels, endpoint string) string {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	return "on: push\njobs:\n  work:\n    runs-on: " + labels + "\n    steps:\n" + joining(t) +
		"      - run: " + stepVariable + "=" + endpoint + " " + self + "\n" +
		"      - run: test \"$GITHUB_RUN_ATTEMPT\" = 2\n"
}

// jobsSystem is a system whose webhooks come, with what it logs.
func jobsSystem(t *testing.T, ctx context.Context, endpoint string) (*local.System, *local.Log) {
	t.Helper()
	dir, log := t.TempDir(), &local.Log{}
	secret, path := filepath.Join(dir, "secret"), filepath.Join(dir, "controld.yaml")
	check(t, os.WriteFile(secret, []byte("what the stand-in and controld share\n"), 0o600))
	check(t, os.WriteFile(path, fmt.Appendf(nil, jobsConfig, endpoint, secret), 0o600))
	s, err := local.Start(ctx, local.Options{Bin: testrun.System.Dir(t), StateDir: filepath.Join(dir, "state"), Config: path, Stderr: log})
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return s, log
}

// TestTracesOfJobs: each attempt of a run has a trace of its own, with the wait and the work of its jobs, what was done about their webhooks,
// and the spans that their own steps send. The rounds of a job pool are in none of them.
func TestTracesOfJobs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	c := collectortest.Start(t, testrun.Collector.Dir(t))
	s, log := jobsSystem(t, ctx, c.Endpoint)
	stopped := false
	defer func() {
		if !stopped {
			_ = s.Stop()
		}
	}()
	over := func(run string, attempt int, conclusion string) local.Job {
		t.Helper()
		got, err := s.GitHub.WaitRun(ctx, run, nil)
		if err != nil || got.Conclusion != conclusion || len(got.Jobs) != 1 {
			t.Fatalf("attempt %d of run %s came out as %q, want %s: %v\n%+v", attempt, run, got.Conclusion, conclusion, err, got.Jobs)
		}
		return got.Jobs[0]
	}
	_, err := s.GitHub.StartRun(ctx, "acme/shop", "7002", stepping(t, "small", c.Endpoint))
	check(t, err)
	jobs := []local.Job{over("7002", 1, "failure")}
	check(t, s.GitHub.RerunFailed(ctx, "7002"))
	jobs = append(jobs, over("7002", 2, "success"))
	_, err = s.Fleet.Provision(ctx, &remudav1.ProvisionRequest{Repository: "acme/shop", RunId: "7003", RequestId: "a", Timeout: durationpb.New(within)})
	check(t, err)
	_, err = s.GitHub.StartRun(ctx, "acme/shop", "7003", "on: push\njobs:\n  work:\n    runs-on: \"${{ github.run_id }}\"\n    steps:\n      - run: 'true'\n")
	check(t, err)
	over("7003", 1, "success")
	workedOn(ctx, t, log, `"action":"completed"`, 3)   // the jobs
	workedOn(ctx, t, log, `run 7003 is over`, 1)       // the run of hosts that were asked for
	workedOn(ctx, t, log, `"action":"in_progress"`, 3) // what says when a job began
	stopped = true
	check(t, s.Stop()) // it sends what waits to be sent

	spans := c.Spans(t, 0)
	for i, job := range jobs {
		attemptSpans(t, spans, i+1, job)
	}
	one, two := first(tracing.OfRun("7002", 1)), first(tracing.OfRun("7002", 2))
	if one.TraceID() == two.TraceID() {
		t.Error("two attempts have one trace")
	}
	if of, got := first(tracing.OfRun("7003", 1)), collectortest.Find(t, spans, "webhook of a run"); got.TraceID != of.TraceID().String() || got.ParentSpanID != of.SpanID().String() {
		t.Errorf("the webhook of run 7003 is in trace %s, below %s, want %s and %s", got.TraceID, got.ParentSpanID, of.TraceID(), of.SpanID())
	}
	round := collectortest.Find(t, spans, "balance of a job pool")
	for _, of := range []string{one.TraceID().String(), two.TraceID().String()} {
		if round.TraceID == of {
			t.Error("a round over the slots of a pool is in the trace of a run")
		}
	}
	if diff := cmp.Diff(map[string]string{"remuda.pool": "small"}, round.Texts()); diff != "" {
		t.Errorf("attributes of a round (-want +got):\n%s", diff)
	}
}

// attemptSpans looks for the spans of an attempt of run 7002, and compares them with what GitHub says of its job.
func attemptSpans(t *testing.T, all []collectortest.Span, attempt int, job local.Job) {
	t.Helper()
	of, _ := tracing.OfRun("7002", attempt)
	var spans []collectortest.Span
	for _, s := range all {
		if s.TraceID == of.TraceID().String() {
			spans = append(spans, s)
		}
	}
	about := map[string]string{
		"vcs.repository.name": "acme/shop", "cicd.pipeline.run.id": "7002", "remuda.run.attempt": fmt.Sprint(attempt), "cicd.pipeline.task.run.id": fmt.Sprint(job.ID),
	}
	inPool := map[string]string{"remuda.pool": "small"}
	for key, value := range about {
		inPool[key] = value
	}
	for name, want := range map[string]map[string]string{
		"webhook of a job": about, "job waits for a runner": inPool, "job runs": inPool, "make test": {},
	} {
		got := collectortest.Find(t, spans, name)
		if got.ParentSpanID != of.SpanID().String() {
			t.Errorf("%s of attempt %d is below %s, want the span of the run, %s", name, attempt, got.ParentSpanID, of.SpanID())
		}
		if diff := cmp.Diff(want, got.Texts()); diff != "" {
			t.Errorf("attributes of %s (-want +got):\n%s", name, diff)
		}
	}
	waits, runs := collectortest.Find(t, spans, "job waits for a runner"), collectortest.Find(t, spans, "job runs")
	least := time.Duration(0) // the second attempt has the host of the first; GitHub's times are whole seconds
	if attempt == 1 {
		least = time.Second
	}
	if waits.EndTimeUnixNano != runs.StartTimeUnixNano || waits.Length() < least {
		t.Errorf("it waits for %s until %s, want %s at least, until it runs, from %s", waits.Length(), waits.EndTimeUnixNano, least, runs.StartTimeUnixNano)
	}
	if want := job.CompletedAt.Truncate(time.Second).Sub(job.StartedAt.Truncate(time.Second)); runs.Length() != want {
		t.Errorf("it runs for %s, and GitHub says %s", runs.Length(), want)
	}
}

// workedOn waits until so many webhooks whose line of the log has a text were worked on.
func workedOn(ctx context.Context, t *testing.T, log *local.Log, text string, want int) {
	t.Helper()
	for {
		got := 0
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "webhook worked on") && strings.Contains(line, text) {
				got++
			}
		}
		if got >= want {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d webhooks with %s were worked on, want %d:\n%s", got, text, want, log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
