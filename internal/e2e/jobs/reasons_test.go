package jobs_test

import (
	"context"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// reasonsConfig has a pool of one host, a limit of two, a budget that one host uses up with a pool of its own, and check runs.
const reasonsConfig = `  check_runs_after: 10s
pools:
  small: {jobs: {labels: [small], maximum: 1, repositories: ["acme/*"]}}
  costly: {jobs: {labels: [costly], maximum: 1, repositories: ["acme/*"]}}
limits: {hosts_per_repository: 2, budgets: [{repository: acme/spent, dollars_per_month: 0.01}]}
cost: {prices: [{instance_type: "*", dollars_per_hour: 1000}]}
sweeps: {budgets: 1s}
page: {}
`

// TestTheSameReasonEverywhere: why a run or a job has no host is the same in `remuda why`, in the list of what waits, in the run's row on the page, in the
// metrics and in the check run on its commit, whatever the cause, and in the log of its job once it has a host. A run that is refused has no check
// run: its own job has the answer.
func TestTheSameReasonEverywhere(t *testing.T) {
	t.Parallel()
	s := emptyStage(t)
	s.process = "    spot_capacity: {\"*\": 0}\n"
	s.beginServed(1, reasonsConfig)
	ask := func(repository, run string, count int32, usage remudav1.UsageClass) func() {
		ctx, cancel := context.WithCancel(s.ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = s.Fleet.Provision(ctx, &remudav1.ProvisionRequest{ // how it ends is not what the test is about
				Repository: repository, RunId: run, InstanceCount: proto.Int32(count), UsageClass: usage, Timeout: durationpb.New(5 * time.Minute),
			})
		}()
		return func() { cancel(); <-done }
	}
	onDemand := remudav1.UsageClass_USAGE_CLASS_ON_DEMAND

	gate := filepath.Join(t.TempDir(), "gate")
	open := func() {
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	defer open()
	s.run("6002", workflow(1, "small", "until [ -e "+gate+" ]; do sleep 0.1; done"))
	s.eventually(func() string { return s.runIs("6002", "in_progress") })
	s.run("6003", workflow(1, "small", "'true'"))
	s.from(repository, "6001", "smal", local.Origin{})
	s.eventually(func() string { // which waits for nothing, so it is in what happened alone
		return s.hasRow("/ui/", row{"REPOSITORY": repository, "RUN": "6001", "ACTION": "refuse job", "REASON": `no pool has the label "smal"`})
	})
	defer ask("acme/limited", "6004", 2, onDemand)()
	s.eventually(func() string { return s.shows("/ui/runs", "/ui/run/acme/limited/6004") })
	defer ask("acme/limited", "6005", 1, onDemand)()
	defer ask("acme/spotty", "6006", 1, remudav1.UsageClass_USAGE_CLASS_SPOT)()
	for run, repository := range map[string]string{"6005": "acme/limited", "6006": "acme/spotty"} { // which have jobs for the hosts that they wait for
		s.eventually(func() string { return s.shows("/ui/waiting", run) })
		s.from(repository, run, "'"+run+"'", local.Origin{})
	}
	defer ask("acme/spent", "6007", 1, onDemand)()
	s.eventually(func() string { return s.shows("/ui/", "used up") })
	s.from("acme/spent", "6008", "costly", local.Origin{})
	_, err := s.Fleet.Provision(s.ctx, &remudav1.ProvisionRequest{Repository: "acme/spent", RunId: "6009"})
	if err == nil || !strings.Contains(err.Error(), "limits.budgets allows repository acme/spent") {
		t.Errorf("over its budget, Provision says %v", err)
	}
	s.eventually(func() string {
		return s.hasRow("/ui/", row{"REPOSITORY": "acme/spent", "RUN": "6009", "ACTION": "settle", "REASON": "limits.budgets allows repository acme/spent"})
	})

	for name, c := range map[string]struct {
		repository, run string
		code            lifecycle.ReasonCode // in its check run, and of what waits
		why             string               // in `remuda why`, on the page of the run, and in its check run
		metric          string
		check           string // the state and the conclusion of its check run; empty: it has none
	}{
		"a misspelled label": {repository, "6001", lifecycle.ReasonLabelUnknown, `no pool has the label "smal"; did you mean small, of pool small?`, `remuda_jobs_unserved_total{code="label_unknown"} 1`, "completed action_required"},
		"a full pool":        {repository, "6003", lifecycle.ReasonPoolFull, "pool small has 1 of 1 host, its maximum", `remuda_jobs_waiting_reason{code="pool_full",pool="small"} 1`, "queued "},
		"a limit":            {"acme/limited", "6005", lifecycle.ReasonQuota, "limits.hosts_per_repository allows acme/limited 2 hosts at once, and none is left", `remuda_requests_waiting{code="quota",pool="default"} 1`, "queued "},
		"no spot":            {"acme/spotty", "6006", lifecycle.ReasonShortage, "the last launch was short", `remuda_requests_waiting{code="shortage",pool="default"} 1`, "queued "},
		"a budget":           {"acme/spent", "6008", lifecycle.ReasonBudgetUsedUp, "limits.budgets allows repository acme/spent $0.01", `remuda_jobs_waiting_reason{code="budget_used_up",pool="costly"} 1`, "queued "},
		"a refused run":      {"acme/spent", "6009", "", "limits.budgets allows repository acme/spent $0.01", `remuda_decisions_total{action="settle",code="budget_used_up"} 1`, ""},
	} {
		s.eventually(func() string {
			if wrong := s.whySays(c.repository, c.run, c.why); wrong != "" {
				return name + ": " + wrong
			}
			for path, want := range map[string]string{"/ui/run/" + c.repository + "/" + c.run: html.EscapeString(c.why), "/metrics": c.metric} {
				if wrong := s.shows(path, want); wrong != "" {
					return name + ": " + wrong
				}
			}
			status, conclusion, has := strings.Cut(c.check, " ")
			if !has {
				return ""
			}
			for _, says := range []string{c.why, "(`" + string(c.code) + "`)"} {
				if wrong := s.hasCheck(c.repository, c.run, status, conclusion, says); wrong != "" {
					return name + ": " + wrong
				}
			}
			if conclusion != "" { // it waits for nothing
				return ""
			}
			if wrong := s.waitsWith(c.run, string(c.code)); wrong != "" {
				return name + ": " + wrong
			}
			return s.hasRow("/ui/waiting", row{"REPOSITORY": c.repository, "RUN": c.run, "WHY": string(c.code), "REASON": c.why})
		})
	}
	open()
	if _, err := s.Fleet.Release(s.ctx, &remudav1.ReleaseRequest{Repository: "acme/limited", RunId: "6004"}); err != nil {
		t.Error(err)
	}
	s.succeeds(nil, "6003", "6005")
	s.eventually(func() string {
		return s.hasCheck(repository, "6003", "completed", "neutral", "nothing waits for hosts any more")
	})
	s.logSays("6003", lifecycle.ReasonPoolFull, "pool small has 1 of 1 host, its maximum")
	s.logSays("6005", lifecycle.ReasonQuota, "limits.hosts_per_repository allows acme/limited 2 hosts at once, and none is left")
}

// logSays checks what the log of the only job of a run says that kept its host.
func (s *stage) logSays(run string, code lifecycle.ReasonCode, why string) {
	s.Helper()
	if log, want := s.logOf(run), fmt.Sprintf("What kept it (%s): %s", code, why); !strings.Contains(log, want) {
		s.Errorf("the log of run %s lacks %q:\n%s", run, want, log)
	}
}

// awayConfig has hosts that are still on their way when GitHub goes away.
const awayConfig = `pools:
  small: {jobs: {labels: [small], maximum: 1, repositories: ["acme/*"], forks: true}}
  ours: {jobs: {labels: [ours], maximum: 1, repositories: ["acme/*"]}}
  default: {}
compute: {process: {boot_delay: 10s}}
`

// TestTheSameReasonWhileGitHubIsAway: a job and a run that wait for hosts say that GitHub does not answer, in the same words everywhere, and have
// their hosts when it is back. The logs of their jobs say it then.
func TestTheSameReasonWhileGitHubIsAway(t *testing.T) {
	t.Parallel()
	s := newStage(t, awayConfig)
	got := make(chan error, 1)
	go func() {
		_, err := s.Fleet.Provision(s.ctx, &remudav1.ProvisionRequest{
			Repository: repository, RunId: "6102", InstanceCount: proto.Int32(1), Timeout: durationpb.New(within),
		})
		got <- err
	}()
	s.eventually(func() string { return s.waitsWith("6102", string(lifecycle.ReasonWaitingForRegistration)) })
	if err := s.GitHub.GoAway(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.run("6101", workflow(1, "small", "'true'"))
	s.run("6103", workflow(1, "ours", "'true'"))
	for run, c := range map[string]struct{ why, metric string }{
		"6101": {"GitHub does not answer, so no host can register for it", `remuda_jobs_waiting_reason{code="github_unavailable",pool="small"} 1`},
		"6102": {"GitHub does not answer, so no host can register, since ", `remuda_requests_waiting{code="github_unavailable",pool="default"} 1`},
	} {
		s.eventually(func() string {
			if wrong := s.whySays(repository, run, c.why); wrong != "" {
				return wrong
			}
			for path, want := range map[string]string{"/ui/run/" + repository + "/" + run: c.why, "/metrics": c.metric} {
				if wrong := s.shows(path, want); wrong != "" {
					return wrong
				}
			}
			if wrong := s.hasRow("/ui/waiting", row{"RUN": run, "WHY": string(lifecycle.ReasonGitHubUnavailable)}); wrong != "" {
				return wrong
			}
			return s.waitsWith(run, string(lifecycle.ReasonGitHubUnavailable))
		})
	}
	const unknown = "GitHub does not answer, and some jobs are known only when it answers again"
	_, err := s.Fleet.ExplainRun(s.ctx, &remudav1.ExplainRunRequest{Repository: repository, RunId: "6103"})
	if err == nil || !strings.Contains(err.Error(), unknown) {
		t.Errorf("whether a run is of a fork is not known: %v", err)
	}
	if err := s.GitHub.ComeBack(s.ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("the run that waited: %v", err)
	}
	s.run("6102", workflow(1, onRun, "'true'"))
	s.succeeds(nil, "6101", "6102", "6103")
	const noHost = "GitHub does not answer, so no host can register"
	s.logSays("6101", lifecycle.ReasonGitHubUnavailable, noHost)
	s.logSays("6102", lifecycle.ReasonGitHubUnavailable, noHost)
	s.logSays("6103", lifecycle.ReasonGitHubUnavailable, "GitHub does not answer whether run 6103 is of a fork")
}

// waitsWith says what is wrong if a run does not wait for a reason.
func (s *stage) waitsWith(run, code string) string {
	resp, err := s.Fleet.ListWaiting(s.ctx, &remudav1.ListWaitingRequest{})
	if err != nil {
		return err.Error()
	}
	for _, w := range resp.GetWaits() {
		if w.GetRunId() == run && w.GetReasonCode() == code && w.GetNext() != "" {
			return ""
		}
	}
	return fmt.Sprintf("run %s does not wait for %s: %v", run, code, resp.GetWaits())
}
