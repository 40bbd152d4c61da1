package instrument_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/instrument"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
	"github.com/remuda-ci/remuda/internal/store/memory"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// herd is a store with some hosts, one on each page.
type herd struct {
	fleet.Store
	records []lifecycle.Record
	broken  bool
	reads   int
}

func (h *herd) ListInstances(_ context.Context, f lifecycle.Filter, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	if h.broken {
		return lifecycle.Page[lifecycle.Record]{}, errors.New("disk gone")
	}
	h.reads++
	at := len(page.After)
	got := lifecycle.Page[lifecycle.Record]{Items: h.records[at : at+1]}
	if at+1 < len(h.records) {
		got.Next = strings.Repeat("x", at+1)
	}
	return got, nil
}

func TestHostGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spot := lifecycle.Hardware{InstanceType: "m7g.large", UsageClass: lifecycle.UsageSpot}
		store := &herd{records: []lifecycle.Record{
			{Pool: "default", State: lifecycle.StateIdle, Hardware: spot},
			{Pool: "default", State: lifecycle.StateRunning, Hardware: lifecycle.Hardware{InstanceType: "x9.new"}},
			{Pool: "default", State: lifecycle.StateIdle, Hardware: spot},
			{Pool: "default", State: lifecycle.StateIdle, Hardware: spot, Stop: &lifecycle.Stop{}},
		}}
		metrics := telemetry.NewMetrics()
		left := func() []github.Budget { return []github.Budget{{Credential: "the token", Remaining: 41}} }
		jobs := memory.New(time.Now)
		waits := lifecycle.Job{ID: 1, Pool: "small", Scope: "acme/app", State: lifecycle.JobWaiting, QueuedAt: time.Now(), Version: 1}
		if err := jobs.CreateJob(t.Context(), waits); err != nil {
			t.Fatal(err)
		}
		seen := model.Service{Version: 1, Backlog: model.Backlog{Queued: new(7)}, Tasks: model.Tasks{Running: 2}, Wanted: 3}
		statuses := []services.Status{
			{Service: services.Service{Name: "jobs-eu", Cluster: "runners"}, Seen: seen},
			{Service: services.Service{Name: "unread", Cluster: "runners"}},
			{Service: services.Service{Name: "render"}, Workers: &workqueue.WorkerCount{Versions: []workqueue.VersionCount{{Online: 1}, {Version: "1.1", Online: 4, Offline: 5}}}},
		}
		services := func(_ context.Context, of lifecycle.PageOf) (lifecycle.Page[services.Status], error) {
			if of.After == "" {
				return lifecycle.Page[services.Status]{Items: statuses[:1], Next: "jobs-eu"}, nil
			}
			return lifecycle.Page[services.Status]{Items: statuses[1:]}, nil
		}
		guards := memory.New(time.Now)
		if _, err := guards.UpdatePause(t.Context(), pause.Pause{Pool: "small", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		held := func(pool string, code lifecycle.ReasonCode) fleet.Wait {
			return fleet.Wait{Pool: pool, Answer: fleet.WaitAnswer{Reason: lifecycle.Because(code, "it waits")}}
		}
		requests := []fleet.Wait{held("default", lifecycle.ReasonQuota), held("default", lifecycle.ReasonShortage), held("default", lifecycle.ReasonQuota)}
		g := &instrument.HostGauges{
			Services: services, Store: store, Jobs: jobs, JobPools: []string{"small"}, Pools: []string{"default", "small"}, Guards: guards, Budgets: left,
			CostBudgets: func(context.Context, time.Time) ([]fleet.BudgetUse, time.Time, error) {
				use := fleet.BudgetUse{Spent: 6}
				use.Owner, use.Dollars = "acme", 8
				return []fleet.BudgetUse{use}, time.Now(), nil
			},
			Price: func(instanceType, usageClass string) (dollars float64, rough, ok bool) {
				return 0.25, true, instanceType == "m7g.large" && usageClass == "spot"
			},
			Metrics: metrics, Log: hclog.NewNullLogger(),
			Requests: func(context.Context, time.Time) ([]fleet.Wait, bool, error) { return requests, false, nil },
			WhyWaits: func(_ context.Context, j lifecycle.Job, _ time.Time) (fleet.WaitAnswer, error) {
				return fleet.WaitAnswer{Reason: lifecycle.Because(lifecycle.ReasonPoolFull, "job %d", j.ID)}, nil
			},
		}
		scraped := func() string {
			w := httptest.NewRecorder()
			g.Before(metrics.Handler()).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			return w.Body.String()
		}
		counts := func(want ...string) {
			t.Helper()
			for _, w := range want {
				if got := scraped(); !strings.Contains(got, w+"\n") {
					t.Errorf("no %s in the metrics", w)
				}
			}
		}
		if strings.Contains(scraped(), `desired{service="unread"}`) {
			t.Error("what is not known of a service is told")
		}
		counts(`remuda_pool_paused{pool="default"} 0`, `remuda_pool_paused{pool="small"} 1`, `remuda_budget_used_ratio{budget="owner acme"} 0.75`,
			`remuda_hosts{pool="default",state="idle"} 2`, `remuda_hosts{pool="default",state="running"} 1`, `remuda_hosts{pool="default",state="stopped"} 1`, `remuda_hosts_dollars_per_hour{pool="default",usage_class="spot"} 0.5`,
			`remuda_github_requests_remaining{credential="the token"} 41`, `remuda_jobs_waiting{pool="small"} 1`, `remuda_jobs_waiting_reason{code="pool_full",pool="small"} 1`, `remuda_turns_open{pool="small"} 0`,
			`remuda_requests_waiting{code="quota",pool="default"} 2`, `remuda_requests_waiting{code="shortage",pool="default"} 1`,
			`remuda_service_jobs_waiting{service="jobs-eu"} 7`, `remuda_service_runners_desired{service="jobs-eu"} 3`,
			`remuda_service_runners_running{service="jobs-eu"} 2`, `remuda_service_workers_online{service="render"} 5`,
			`remuda_service_workers_offline{service="render"} 5`)
		for _, unknown := range []string{`remuda_hosts_dollars_per_hour{pool="default",usage_class=""}`, `remuda_service_workers_online{service="jobs-eu"}`, `{service="render"} 0`} {
			if strings.Contains(scraped(), unknown) {
				t.Errorf("%s is in the metrics, and is not known", unknown)
			}
		}
		if store.reads != 4 {
			t.Errorf("%d pages were read by 2 scrapes at once, want the 4 of one", store.reads)
		}
		store.records, requests = store.records[:1], nil
		waits.State = lifecycle.JobRunning
		if _, err := jobs.UpdateJob(t.Context(), waits); err != nil {
			t.Fatal(err)
		}
		time.Sleep(instrument.CountEvery)
		if strings.Contains(scraped(), "remuda_jobs_waiting_reason{") {
			t.Error("no job waits, and there is a reason why one does")
		}
		if strings.Contains(scraped(), "remuda_requests_waiting{") {
			t.Error("requests are counted that do not wait any more")
		}
		counts(`remuda_hosts{pool="default",state="idle"} 1`, `remuda_hosts_dollars_per_hour{pool="default",usage_class="spot"} 0.25`)
		store.broken = true
		time.Sleep(instrument.CountEvery)
		counts(`remuda_hosts{pool="default",state="idle"} 1`)
	})
}
