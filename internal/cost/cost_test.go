package cost_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

var update = flag.Bool("update", false, "write docs/cost.md")

const pagePath = "../../docs/cost.md"

type call = aws.Call

// batchRead is how a Provision waits, and how a sweep reads records.
var batchRead = call{Service: "dynamodb", Operation: "BatchGetItem"}

// TestThePage measures, holds what it found against the bars, and compares the
// page with it.
func TestThePage(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsAreServed")
	m := measured{sweeps: map[int]swept{}}
	var small, large swept
	t.Run("measure", func(t *testing.T) {
		for name, measure := range map[string]func(*testing.T){
			"hours":               func(t *testing.T) { m.hours = measureHours(t) },
			"requests":            func(t *testing.T) { m.requests = measureRequests(t) },
			"sweeps, 100 hosts":   func(t *testing.T) { small = measureSweeps(t, sizes[0]) },
			"sweeps, 1,000 hosts": func(t *testing.T) { large = measureSweeps(t, sizes[1]) },
			"jobs":                func(t *testing.T) { m.jobs.told = measureJobs(t) },
			"sweeps, job pools":   func(t *testing.T) { m.jobs.looks, m.jobs.news, m.jobs.rest = measureJobSweeps(t) },
			"hot hosts":           func(t *testing.T) { m.hot = measureHot(t) },
			"hosts that rest":     func(t *testing.T) { m.resting = measureResting(t) },
			"stopped hosts":       func(t *testing.T) { m.stopped = measureStopped(t) },
			"caches":              func(t *testing.T) { m.caches = measureCaches(t) },
			"warm pools":          func(t *testing.T) { m.policies.warm = measureWarm(t) },
			"keeping costs":       func(t *testing.T) { m.keeping = measureKept(t) },
			"services":            func(t *testing.T) { m.policies.services = measureServices(t) },
			"jobs of workers":     func(t *testing.T) { m.policies.work = measureWork(t) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				measure(t)
			})
		}
	})
	if t.Failed() || m.hours == nil || m.requests == nil || small.hosts == 0 || large.hosts == 0 || m.jobs.told == nil || m.jobs.rest == nil ||
		len(m.hot) != len(hotHosts) || m.resting == nil || len(m.stopped) != len(stoppedHosts) || len(m.caches) != len(cachedClaims) || len(m.policies.warm) != len(freshHosts) || m.policies.services == nil || m.policies.work == nil || m.keeping.budgets.host.ReadUnits == 0 || m.keeping.pooled.without.Calls == nil {
		t.Fatal("not all was measured")
	}
	m.sweeps[small.hosts], m.sweeps[large.hosts] = small, large
	m.checkHours(t)
	m.checkKeeping(t)
	m.checkKept(t)
	m.checkEstimate(t)
	m.checkClaims(t)
	m.checkReleases(t)
	m.checkSweeps(t)
	m.checkHot(t)
	m.checkStopped(t)
	m.checkCaches(t)

	samePage(t, pagePath, m.page())
	samePage(t, scalePath, m.scalePage())
}

// samePage compares a page with what is rendered, or writes it with -update.
func samePage(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s is not what the calls cost; write it with go test ./internal/cost -run ThePage -update (-file +calls):\n%s", path, diff)
	}
}

func (m measured) checkHours(t *testing.T) {
	t.Helper()
	for _, h := range m.hours {
		if h.reads > 0 && (h.perHour.Reads() > float64(h.reads) || h.perHour.Writes() > cost.HourlyWrites) {
			t.Errorf("%s: %v reads and %v writes an hour, want at most %d and %d",
				h.name, h.perHour.Reads(), h.perHour.Writes(), h.reads, cost.HourlyWrites)
		}
	}
}

func (m measured) checkClaims(t *testing.T) {
	t.Helper()
	for _, s := range m.requests {
		if got, want := s.claim.Without(batchRead).Total(), float64(cost.ClaimCalls(s.hosts)); got > want {
			t.Errorf("a warm claim of %d hosts: %v calls beside its waiting, want at most %v: %v", s.hosts, got, want, s.claim.Calls)
		}
		// The first look comes at once.
		if got, want := s.cold.Calls[batchRead], 1+cost.WaitingASecond*boot.Seconds(); got > want {
			t.Errorf("%d hosts that boot for %v: %v batched reads, want at most %v", s.hosts, boot, got, want)
		}
	}
}

// checkReleases: hosts that come clean together are read together.
func (m measured) checkReleases(t *testing.T) {
	t.Helper()
	for _, s := range m.requests {
		hundreds := float64((s.hosts + 99) / 100)
		if got, want := s.release.Calls[batchRead], hundreds*m.requests[0].release.Calls[batchRead]; got > want {
			t.Errorf("a release of %d hosts: %v batched reads, want at most %v", s.hosts, got, want)
		}
	}
}

// checkSweeps: what is computed for larger fleets holds for those measured, and
// the due sweep does not know how large its fleet is.
func (m measured) checkSweeps(t *testing.T) {
	t.Helper()
	small, large := m.sweeps[sizes[0]], m.sweeps[sizes[1]]
	for _, s := range m.sweeps {
		if got, want := s.liveness.Total(), float64(cost.LivenessCalls(s.hosts)); got != want {
			t.Errorf("liveness sweep of %d hosts: %v calls, computed %v", s.hosts, got, want)
		}
		if got, want := s.cloud.Reads(), float64(cost.CloudReads(s.hosts)); got != want {
			t.Errorf("cloud sweep of %d hosts: %v reads, computed %v", s.hosts, got, want)
		}
	}
	if got, want := small.cloud.Of("ec2"), float64(cost.CloudCalls(small.hosts)); got != want {
		t.Errorf("cloud sweep of %d hosts: %v calls of EC2, computed %v", small.hosts, got, want)
	}
	type due struct {
		Rest        cost.Usage
		Ends, Ended map[int]cost.Usage
	}
	if diff := cmp.Diff(due{small.rest, small.ends, small.ended}, due{large.rest, large.ends, large.ended}); diff != "" {
		t.Errorf("the due sweep of the larger fleet calls something else (-%d hosts +%d):\n%s", small.hosts, large.hosts, diff)
	}
}
