package ec2_test

import (
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// hibernates is a fleet whose hosts can be hibernated with up to 42 GiB of memory.
func (w world) hibernates() ec2.Options {
	return pool(w.options(), func(p *ec2.Pool) { p.HibernateMiB = 42 << 10 })
}

// TestHibernate: a machine that was launched for it is hibernated once it is ready, and every other one is stopped plainly.
func TestHibernate(t *testing.T) {
	for name, test := range map[string]struct {
		launchedFor bool
		after       time.Duration
		hibernate   bool
		want        bool
		refusal     string
	}{
		"it is hibernated":            {true, 0, true, true, ""},
		"it is stopped":               {true, 0, false, false, ""},
		"it is not ready":             {true, time.Hour, true, false, ""},
		"it was launched before that": {false, 0, true, false, ""},
		"EC2 has another word for it": {true, 0, true, false, "UnsupportedHostConfiguration"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.HibernateAfter(test.after)
			if test.refusal != "" {
				w.RefuseHibernation(test.refusal)
			}
			o := w.options()
			if test.launchedFor {
				o = w.hibernates()
			}
			c := w.ready(t, o)
			if changes := ensure(t, c); len(changes) > 0 {
				t.Errorf("the template differs from what was just made: %+v", changes)
			}
			machines, err := c.Launch(t.Context(), order(t, c, 1, 1))
			if err != nil {
				t.Fatal(err)
			}
			id := machines[0].InstanceID
			state := func() lifecycle.Machine {
				got, err := c.Describe(t.Context(), []string{id})
				if err != nil {
					t.Fatal(err)
				}
				return got[0]
			}
			if m := state(); m.Hibernates != test.launchedFor || machines[0].Hibernates != m.Hibernates {
				t.Errorf("it can be hibernated: %t, and after its launch %t", m.Hibernates, machines[0].Hibernates)
			}
			before := w.calls("StopInstances")
			if err := c.Stop(t.Context(), id, test.hibernate); err != nil {
				t.Fatal(err)
			}
			for began := time.Now(); state().State != lifecycle.MachineStopped; time.Sleep(5 * time.Millisecond) {
				if time.Since(began) > time.Minute {
					t.Fatalf("the machine is %s", state().State)
				}
			}
			if w.Hibernated(id) != test.want {
				t.Errorf("it is hibernated: %t, want %t", w.Hibernated(id), test.want)
			}
			calls := 1
			if test.hibernate && !test.want {
				calls = 2
			}
			if n := w.calls("StopInstances") - before; n != calls {
				t.Errorf("%d calls, want %d", n, calls)
			}
			if err := c.Start(t.Context(), id); err != nil || w.Hibernated(id) {
				t.Errorf("start: %v, still hibernated %t", err, w.Hibernated(id))
			}
		})
	}
}

// TestWhatIsLaunchedForHibernation: only types that EC2 hibernates, with no more memory than there is room for.
func TestWhatIsLaunchedForHibernation(t *testing.T) {
	racepass.OneGoroutine(t)
	for _, test := range []struct{ room, maxMemoryMiB, want int }{{0, 0, 16384}, {8192, 0, 8192}, {42 << 10, 0, 16384}, {42 << 10, 65536, 43008}} {
		o := plain(1, 1)
		o.MaxMemoryMiB = test.maxMemoryMiB
		r := required(t, ec2.Pool{HibernateMiB: test.room}, o)
		if got := sdk.ToInt32(r.MemoryMiB.Max); int(got) != test.want || sdk.ToBool(r.RequireHibernateSupport) != (test.room > 0) {
			t.Errorf("room for %d MiB: at most %d, want %d, of types that hibernate %t", test.room, got, test.want, sdk.ToBool(r.RequireHibernateSupport))
		}
		if excluded := r.LocalStorage == types.LocalStorageExcluded; excluded != (test.room > 0) {
			t.Errorf("room for %d MiB: types with an instance store, which is lost, are %q", test.room, r.LocalStorage)
		}
	}
}

// TestRehearseHibernation: a pool whose types EC2 does not hibernate is found before a launch.
func TestRehearseHibernation(t *testing.T) {
	w := newWorld(t)
	c := w.ready(t, w.hibernates())
	for name, test := range map[string]struct {
		types   []string
		refused bool
	}{"types that hibernate": {[]string{"c*", "m*", "r*"}, false}, "a type that does not": {[]string{"r6i.*", "c5a.*"}, true}} {
		o := order(t, c, 1, 1)
		o.InstanceTypes = test.types
		for _, r := range c.Rehearse(t.Context(), []lifecycle.LaunchOrder{o}) {
			if r.Action == "ec2:RunInstances" && ((r.Err != nil) != test.refused || r.NotTried != "" || r.Denied()) {
				t.Errorf("%s: %v, not tried %q", name, r.Err, r.NotTried)
			}
		}
	}
}
