package fleet_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
)

var (
	tables = resources.Resource{Kind: "table", Name: "remuda-instances", Change: resources.Created, Detail: "it was missing"}
	queue1 = resources.Resource{Kind: "queue", Name: "remuda-large-spot", Change: resources.Updated, Detail: "retention was 4 days"}
)

func TestRefreshEnsures(t *testing.T) {
	errDenied := errors.New("allow the action dynamodb:CreateTable")
	tests := map[string]struct {
		dry       bool
		resources []resources.Resource
		err       error
		sweeps    bool // are there decisions
	}{
		"all is right":               {sweeps: true},
		"a queue was wrong":          {resources: []resources.Resource{queue1}, sweeps: true},
		"a table was made":           {resources: []resources.Resource{tables}, sweeps: true},
		"a table would be made":      {dry: true, resources: []resources.Resource{tables, queue1}},
		"a queue would be put right": {dry: true, resources: []resources.Resource{queue1}, sweeps: true},
		"a permission is missing":    {resources: []resources.Resource{queue1}, err: errDenied},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(o *fleet.Options) {
					o.Ensure = fleet.Together(
						func(_ context.Context, dry bool) ([]resources.Resource, error) {
							if dry != tt.dry {
								t.Errorf("dry run %t, want %t", dry, tt.dry)
							}
							return nil, tt.err
						},
						func(context.Context, bool) ([]resources.Resource, error) { return tt.resources, nil },
					)
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go w.agents(ctx)
				w.mustProvision(ctx, demand("1", "a", 1))
				r := w.fleet.NewRefresh(tt.dry)
				if err := w.fleet.Drive(ctx, r, patience); !errors.Is(err, tt.err) {
					t.Errorf("got error %v, want %v", err, tt.err)
				}
				if diff := cmp.Diff(tt.resources, r.Resources()); diff != "" {
					t.Errorf("resources (-want +got):\n%s", diff)
				}
				if got := len(r.Decisions()) > 0; got != tt.sweeps {
					t.Errorf("decisions %v, want some: %t", r.Decisions(), tt.sweeps)
				}
			})
		})
	}
}

// orders notes the launches that are made.
type orders struct {
	fleet.Compute
	made []lifecycle.LaunchOrder
}

func (o *orders) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	o.made = append(o.made, order)
	return o.Compute.Launch(ctx, order)
}

// TestARefreshTellsEachResourceOnce: what a first try told before it failed is
// not told again by a dry run, nor forgotten by one that did it.
func TestARefreshTellsEachResourceOnce(t *testing.T) {
	for _, dry := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			w := newWorld(t, func(o *fleet.Options) {
				o.Ensure = func(context.Context, bool) ([]resources.Resource, error) {
					tries++
					switch {
					case tries == 1:
						return []resources.Resource{queue1}, &lifecycle.UnavailableError{What: "ensure", Err: context.DeadlineExceeded}
					case dry:
						return []resources.Resource{queue1}, nil
					}
					return nil, nil
				}
			})
			r := w.fleet.NewRefresh(dry)
			if err := w.fleet.Drive(t.Context(), r, patience); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]resources.Resource{queue1}, r.Resources()); diff != "" {
				t.Errorf("dry run %t: resources (-want +got):\n%s", dry, diff)
			}
		})
	}
}

func TestALaunchLeavesOutWhatIsExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &orders{}
		exhausted := []lifecycle.Offering{{InstanceType: "c6i.large", Place: "eu-west-1a"}}
		w := newWorld(t, func(o *fleet.Options) {
			made.Compute, o.Compute = o.Compute, made
			o.Exhausted = func(usage lifecycle.UsageClass) []lifecycle.Offering {
				if usage != lifecycle.UsageSpot {
					return nil
				}
				return exhausted
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		d := demand("1", "a", 1)
		d.Spec.UsageClass = lifecycle.UsageSpot
		w.mustProvision(ctx, d) // the only spot host
		w.mustProvision(ctx, demand("2", "b", 1))
		d.RunID, d.RequestID, d.Spec.Timeout = "3", "c", 15*time.Second
		if _, err := w.provision(ctx, d); err == nil {
			t.Error("there is a second spot host")
		}
		var got [][]lifecycle.Offering
		for _, order := range made.made {
			got = append(got, order.Exclude)
		}
		// The last launch comes after one that was short, and tries everything.
		if diff := cmp.Diff([][]lifecycle.Offering{exhausted, nil, exhausted, nil}, got); diff != "" {
			t.Errorf("left out (-want +got):\n%s", diff)
		}
	})
}

func TestALaunchNamesItsTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := "3"
		w := newWorld(t, func(o *fleet.Options) {
			o.TemplateVersion = func(_ context.Context, pool string) (string, error) { return pool + " " + version, nil }
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		w.mustProvision(ctx, demand("1", "a", 1))
		version = "4"
		w.mustProvision(ctx, demand("2", "b", 1))
		var got []string
		for _, r := range w.records() {
			got = append(got, r.RunID+": "+r.TemplateVersion)
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"1: default 3", "2: default 4"}, got); diff != "" {
			t.Errorf("templates (-want +got):\n%s", diff)
		}
	})
}

// TestANewRoleRetiresHosts: hosts keep the key that they were launched with,
// serve their run, and go when it is done.
func TestANewRoleRetiresHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		w.mustProvision(ctx, demand("1", "a", 1))
		w.mustProvision(ctx, demand("2", "b", 1))
		w.release(ctx, "2", true)
		w.fleet = w.newFleet("b", func(o *fleet.Options) { o.HostKey = func(id string) string { return "new:" + id } })
		if err := w.fleet.Drive(ctx, w.fleet.NewCloudSweep(), patience); err != nil {
			t.Fatal(err)
		}
		for _, r := range w.records() {
			if !r.Retiring {
				t.Errorf("%s is not retiring: %+v", r.InstanceID, r)
			}
			if _, _, err := w.fleet.Instance(ctx, r.InstanceID, time.Now()); err != nil {
				t.Errorf("by its id: %v", err)
			}
		}
		go w.fleet.Sweep(ctx)
		time.Sleep(30 * time.Second)
		if n := len(w.records(lifecycle.StateRunning)); n != 1 {
			t.Errorf("%d hosts serve their run, want 1", n)
		}
		if n := len(w.records(lifecycle.StateTerminated)); n != 1 {
			t.Errorf("%d idle hosts have gone, want 1", n)
		}
		w.release(ctx, "1", false)
		time.Sleep(30 * time.Second)
		if n := len(w.records(lifecycle.StateTerminated)); n != 2 {
			t.Errorf("%d hosts have gone, want 2", n)
		}
	})
}
