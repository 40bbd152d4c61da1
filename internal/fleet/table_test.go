package fleet

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet/checks"
	"github.com/remuda-ci/remuda/internal/fleet/jobs"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/scaledown"
	"github.com/remuda-ci/remuda/internal/fleet/sweeps"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
	"github.com/remuda-ci/remuda/internal/policy/runnerage"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// everySweep is a fleet in which every sweep is configured. Its ports must not be called.
func everySweep(t *testing.T) *Fleet {
	t.Helper()
	f, err := New(Options{
		Store: struct{ ports.Store }{}, Queue: struct{ ports.Queue }{}, Compute: struct{ ports.Compute }{}, GitHub: struct{ ports.GitHub }{},
		Pools: map[string]ports.Pool{"default": {Name: "default", Warm: &ports.WarmPool{}}}, Replica: "a",
		Jobs: &jobs.Options{
			Store: struct{ ports.JobStore }{}, GitHub: struct{ ports.GitHubJobs }{},
			Parse: func(string, string, []byte, time.Time) (lifecycle.Webhook, error) { return lifecycle.Webhook{}, nil },
		},
		ScaleDown: &scaledown.Options{GitHub: struct{ scaledown.Registrations }{}},
		Workers:   &workqueue.Options{Store: struct{ workqueue.Store }{}},
		Prices:    &price.List{},
		Budgets:   budget.List{{Owner: "acme", Dollars: 1}},
		Guards:    struct{ ports.GuardStore }{},
		Checks:    &checks.Options{},
		Releases:  func(context.Context) ([]runnerage.Release, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func namesOf(table []sweeps.Kind) []string {
	var names []string
	for _, k := range table {
		names = append(names, k.Name)
	}
	return names
}

// The page of the architecture has every sweep of the table, with its interval.
func TestSweepsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	for _, k := range everySweep(t).sweepTable() {
		want[k.Name] = interval(k.Every)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z_]+) \| (\d+ (?:s|min|h)) \|`).FindAllSubmatch(page, -1) {
		got[string(row[1])] = string(row[2])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the sweeps in docs/architecture.md (-table +page):\n%s", diff)
	}
}

func interval(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// A refresh runs every sweep of the table, and a dry one all that can run dry.
func TestRefreshRunsTheTable(t *testing.T) {
	f := everySweep(t)
	ran := func(dry bool) []string {
		r := f.NewRefresh(dry)
		var names []string
		for _, s := range r.sweeps {
			names = append(names, s.Name)
			if o, ok := s.op.(interface{ Recorder() *op.Recorder }); ok && (o.Recorder().Dry != dry || o.Recorder().Decided != &r.decided) {
				t.Errorf("%s: its decisions are not those of the refresh", s.Name)
			}
		}
		return names
	}
	all := slices.DeleteFunc(f.sweepTable(), func(k sweeps.Kind) bool { return k.Aside })
	if diff := cmp.Diff(namesOf(all), ran(false)); diff != "" {
		t.Errorf("a refresh (-table +refresh):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cloud", "github", "work", "scale_down", "services", "warm"}, ran(true)); diff != "" {
		t.Errorf("a dry run (-want +got):\n%s", diff)
	}
}
