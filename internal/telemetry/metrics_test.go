package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// scrape returns the lines of our metrics that begin with one of the prefixes,
// buckets left out.
func scrape(m *telemetry.Metrics, prefixes ...string) []string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(line)
		ours := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) })
		if ours && !strings.Contains(line, "_bucket{") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestMetrics(t *testing.T) {
	m := telemetry.NewMetrics()
	m.Claimed(250 * time.Millisecond)
	m.Registered(30 * time.Second)
	m.Released(time.Second)
	m.Released(2 * time.Second)
	m.Requested("Provision", "OK", 500*time.Millisecond)
	m.Delivered("workflow_job", "accepted")
	m.Delivered("workflow_job", "accepted")
	m.Delivered("other", "ignored")
	m.Decided(lifecycle.ActionTerminate, lifecycle.ReasonIdleTimeout)
	m.Decided(lifecycle.ActionTerminate, lifecycle.ReasonIdleTimeout)
	m.Decided(lifecycle.ActionKeep, lifecycle.ReasonYoung)
	m.SetHosts(map[telemetry.HostsOf]int{{Pool: "default", State: lifecycle.StateIdle}: 7, {Pool: "gone", State: lifecycle.StateRunning}: 1})
	m.SetHosts(map[telemetry.HostsOf]int{{Pool: "default", State: lifecycle.StateIdle}: 3})
	m.Provisioned("cold", 40*time.Second)
	m.Provisioned("hot", 500*time.Millisecond)
	m.Took("default", 3, 1)
	m.Took("default", 0, 2)
	m.JobStarted("small", 7*time.Second)
	m.JobUnserved(lifecycle.ReasonLabelUnknown)
	m.JobUnserved(lifecycle.ReasonLabelUnknown)
	m.Busy(4)
	m.Busy(3)
	want := []string{
		"remuda_claim_duration_seconds_sum 0.25",
		"remuda_claim_duration_seconds_count 1",
		`remuda_decisions_total{action="keep",code="young"} 1`,
		`remuda_decisions_total{action="terminate",code="idle_timeout"} 2`,
		`remuda_grpc_request_duration_seconds_sum{code="OK",method="Provision"} 0.5`,
		`remuda_grpc_request_duration_seconds_count{code="OK",method="Provision"} 1`,
		`remuda_hosts{pool="default",state="idle"} 3`,
		"remuda_hosts_busy 3",
		`remuda_hosts_taken_total{from="launch",pool="default"} 3`,
		`remuda_hosts_taken_total{from="pool",pool="default"} 3`,
		`remuda_job_queue_duration_seconds_sum{pool="small"} 7`,
		`remuda_job_queue_duration_seconds_count{pool="small"} 1`,
		`remuda_jobs_unserved_total{code="default_labels"} 0`,
		`remuda_jobs_unserved_total{code="fork"} 0`,
		`remuda_jobs_unserved_total{code="label_unknown"} 2`,
		`remuda_jobs_unserved_total{code="not_provisioned"} 0`,
		`remuda_jobs_unserved_total{code="not_served"} 0`,
		`remuda_jobs_unserved_total{code="other_runners"} 0`,
		`remuda_jobs_unserved_total{code="run_unknown"} 0`,
		`remuda_provision_duration_seconds_sum{start="cold"} 40`,
		`remuda_provision_duration_seconds_count{start="cold"} 1`,
		`remuda_provision_duration_seconds_sum{start="hot"} 0.5`,
		`remuda_provision_duration_seconds_count{start="hot"} 1`,
		"remuda_register_duration_seconds_sum 30",
		"remuda_register_duration_seconds_count 1",
		"remuda_release_duration_seconds_sum 3",
		"remuda_release_duration_seconds_count 2",
		`remuda_webhooks_total{event="other",outcome="ignored"} 1`,
		`remuda_webhooks_total{event="workflow_job",outcome="accepted"} 2`,
	}
	got := scrape(m, "remuda_claim", "remuda_decisions", "remuda_register", "remuda_release", "remuda_grpc", "remuda_hosts", "remuda_webhooks", "remuda_job_", "remuda_jobs_unserved", "remuda_provision")
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"remuda_build_info{", "go_goroutines ", "process_start_time_seconds "} {
		if len(scrape(m, name)) != 1 {
			t.Errorf("%s is missing", name)
		}
	}
}

// The time of hosts adds up by pool and part.
func TestTheTimeOfHosts(t *testing.T) {
	m := telemetry.NewMetrics()
	m.HostTime("default", meter.Times{Idle: time.Minute, Busy: time.Hour})
	m.HostTime("default", meter.Times{Boot: 1500 * time.Millisecond, Busy: time.Second, Clean: time.Second})
	want := []string{
		`remuda_host_time_seconds_total{part="boot",pool="default"} 1.5`,
		`remuda_host_time_seconds_total{part="busy",pool="default"} 3601`,
		`remuda_host_time_seconds_total{part="clean",pool="default"} 1`,
		`remuda_host_time_seconds_total{part="idle",pool="default"} 60`,
	}
	if d := cmp.Diff(want, scrape(m, "remuda_host_time")); d != "" {
		t.Error(d)
	}
}

// What hosts cost adds up by pool, usage class and part, at the price of each.
func TestTheCostOfHosts(t *testing.T) {
	m := telemetry.NewMetrics()
	m.HostCost(meter.Host{Pool: "default", UsageClass: "spot"}, 2, meter.Times{Idle: 90 * time.Minute, Busy: time.Hour})
	m.HostCost(meter.Host{Pool: "default", UsageClass: "spot", InstanceType: "m7g.large"}, 4, meter.Times{Idle: 30 * time.Minute})
	m.HostCost(meter.Host{Pool: "default", UsageClass: "on-demand"}, 1, meter.Times{Boot: 45 * time.Minute, Clean: 15 * time.Minute})
	want := []string{
		`remuda_host_cost_dollars_total{part="boot",pool="default",usage_class="on-demand"} 0.75`,
		`remuda_host_cost_dollars_total{part="boot",pool="default",usage_class="spot"} 0`,
		`remuda_host_cost_dollars_total{part="busy",pool="default",usage_class="on-demand"} 0`,
		`remuda_host_cost_dollars_total{part="busy",pool="default",usage_class="spot"} 2`,
		`remuda_host_cost_dollars_total{part="clean",pool="default",usage_class="on-demand"} 0.25`,
		`remuda_host_cost_dollars_total{part="clean",pool="default",usage_class="spot"} 0`,
		`remuda_host_cost_dollars_total{part="idle",pool="default",usage_class="on-demand"} 0`,
		`remuda_host_cost_dollars_total{part="idle",pool="default",usage_class="spot"} 5`,
	}
	if d := cmp.Diff(want, scrape(m, "remuda_host_cost")); d != "" {
		t.Error(d)
	}
}

// The label has few values, whatever a cloud says.
func TestMachinesThatAreGoneAreCountedByTheirCode(t *testing.T) {
	m := telemetry.NewMetrics()
	for _, why := range []string{
		"Client.InternalError: Client error on launch; allow the launch to use the KMS key of its volumes (docs/iam)", "Server.SpotInstanceTermination",
		"Server.SpotInstanceTermination: Spot instance termination", "Client.New: x", "it rained", "",
	} {
		m.MachineGone(why)
	}
	want := []string{
		`remuda_machines_gone_total{code="Client.InternalError"} 1`,
		`remuda_machines_gone_total{code="Server.SpotInstanceTermination"} 2`,
		`remuda_machines_gone_total{code="none"} 1`,
		`remuda_machines_gone_total{code="other"} 2`,
	}
	if d := cmp.Diff(want, scrape(m, "remuda_machines_gone")); d != "" {
		t.Error(d)
	}
}

func TestCallsAreCountedByTheClassOfTheirError(t *testing.T) {
	m := telemetry.NewMetrics()
	errs := []error{
		nil, nil, errors.New("odd"), context.Canceled, context.DeadlineExceeded,
		lifecycle.ErrConflict, lifecycle.ErrNotFound, lifecycle.ErrExists, lifecycle.ErrBusy,
		&lifecycle.UnavailableError{What: "x", Err: errors.New("y")}, &lifecycle.ShortageError{},
	}
	for _, err := range errs {
		if err != nil {
			err = fmt.Errorf("claim host: %w", err)
		}
		m.Called("store.claim_instance", err)
	}
	var want []string
	for _, result := range []string{"busy 1", "canceled 1", "error 1", "exists 1", "lost 1", "not_found 1", "ok 2", "shortage 1", "timeout 1", "unavailable 1"} {
		word, n, _ := strings.Cut(result, " ")
		want = append(want, fmt.Sprintf(`remuda_calls_total{operation="store.claim_instance",result=%q} %s`, word, n))
	}
	if d := cmp.Diff(want, scrape(m, "remuda_calls_total")); d != "" {
		t.Error(d)
	}
}

func TestSweepAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := telemetry.NewMetrics()
		age := func(want ...string) {
			t.Helper()
			if d := cmp.Diff(want, scrape(m, "remuda_sweep_age_seconds")); d != "" {
				t.Error(d)
			}
		}
		age()
		m.Swept("due", time.Second, lifecycle.ErrUnavailable)
		time.Sleep(5 * time.Second)
		m.Swept("due", time.Second, lifecycle.ErrUnavailable)
		age(`remuda_sweep_age_seconds{sweep="due"} 5`)
		m.Swept("due", time.Second, nil)
		m.Swept("cloud", time.Minute, nil)
		time.Sleep(2 * time.Second)
		m.Swept("due", time.Second, lifecycle.ErrUnavailable)
		age(`remuda_sweep_age_seconds{sweep="cloud"} 2`, `remuda_sweep_age_seconds{sweep="due"} 2`)
		want := []string{
			`remuda_sweep_duration_seconds_count{result="ok",sweep="cloud"} 1`,
			`remuda_sweep_duration_seconds_count{result="ok",sweep="due"} 1`,
			`remuda_sweep_duration_seconds_count{result="unavailable",sweep="due"} 3`,
		}
		if d := cmp.Diff(want, scrape(m, "remuda_sweep_duration_seconds_count")); d != "" {
			t.Error(d)
		}
	})
}

// TestBusyHostsAreNotRemembered: a replica that no longer sweeps says nothing of them.
func TestBusyHostsAreNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := telemetry.NewMetrics()
		if got := scrape(m, "remuda_hosts_busy"); len(got) != 0 {
			t.Errorf("before a sweep: %q", got)
		}
		m.Busy(0)
		time.Sleep(time.Minute)
		if got := scrape(m, "remuda_hosts_busy"); len(got) != 1 || got[0] != "remuda_hosts_busy 0" {
			t.Errorf("a minute after a sweep: %q", got)
		}
		time.Sleep(time.Minute)
		if got := scrape(m, "remuda_hosts_busy"); len(got) != 0 {
			t.Errorf("two minutes after a sweep: %q", got)
		}
	})
}
