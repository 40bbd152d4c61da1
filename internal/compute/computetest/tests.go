package computetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func localTypes() []string {
	if catalogue.LocalArch() == catalogue.ArchArm {
		return []string{"c7g.large", "m7g.large"}
	}
	return []string{"c6i.large", "m6i.large"}
}

// ignoreState sets aside what goes on changing while a machine boots and ends.
var ignoreState = cmpopts.IgnoreFields(lifecycle.Machine{}, "State", "EndReason", "EndedAt")

// ignoreLaunchTime: EC2 counts from the last start.
var ignoreLaunchTime = cmpopts.IgnoreFields(lifecycle.Machine{}, "LaunchedAt")

func testLaunch(t *testing.T, c Cloud) {
	machines := launch(t, c.First, order("q", 1, 2))
	want := lifecycle.Machine{
		Hardware: lifecycle.Hardware{
			InstanceType: types[0], CPU: 2, MemoryMiB: 4096, Arch: catalogue.LocalArch(),
			UsageClass: lifecycle.UsageOnDemand, ResourceClass: "large",
		},
		Pool: "default", Repository: "acme/shop", RunID: "77", RequestID: "q", Launch: 1, TemplateVersion: "3",
	}
	for _, m := range machines {
		if diff := cmp.Diff(want, m, ignoreState, cmpopts.IgnoreFields(m, "InstanceID", "HostKey", "Zone", "LaunchedAt")); diff != "" {
			t.Errorf("machine (-want +got):\n%s", diff)
		}
		if !strings.HasPrefix(m.InstanceID, "i-") || m.HostKey == "" || m.Zone == "" || m.LaunchedAt.IsZero() {
			t.Errorf("machine lacks an id, a host key, a zone or a launch time: %+v", m)
		}
		if m.State != lifecycle.MachinePending && m.State != lifecycle.MachineRunning {
			t.Errorf("machine is %s", m.State)
		}
	}
	if diff := cmp.Diff(machines, describe(t, c.Second, idsOf(machines)...), ignoreState); diff != "" {
		t.Errorf("described (-launched +described):\n%s", diff)
	}
}

func testBoot(t *testing.T, c Cloud) {
	id := launch(t, c.First, order("q", 1, 1))[0].InstanceID
	c.Boot(id)
	awaitState(t, c.Second, id, lifecycle.MachineRunning)
}

func awaitState(t *testing.T, c Compute, id string, want lifecycle.MachineState) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		got := describe(t, c, id)[0].State
		if got == want {
			return
		}
		if time.Since(began) > bootTimeout {
			t.Fatalf("machine %s is %s, want %s", id, got, want)
		}
	}
}

func testRepeat(t *testing.T, c Cloud) {
	first := launch(t, c.First, order("q", 1, 3))
	if diff := cmp.Diff(first, launch(t, c.Second, order("q", 1, 3)), ignoreState); diff != "" {
		t.Errorf("the same order again (-first +second):\n%s", diff)
	}
	for _, other := range []lifecycle.LaunchOrder{order("q", 2, 3), order("p", 1, 3)} {
		for _, m := range launch(t, c.First, other) {
			if slices.Contains(idsOf(first), m.InstanceID) {
				t.Errorf("order %s was given %s of another", other.Token, m.InstanceID)
			}
		}
	}
	if got := len(list(t, c.First, 0)); got != 9 {
		t.Errorf("%d machines live, want 9", got)
	}
}

func testOtherOrder(t *testing.T, c Cloud) {
	launch(t, c.First, order("q", 1, 1))
	machines, err := c.Second.Launch(t.Context(), order("q", 1, 2))
	if !errors.Is(err, lifecycle.ErrExists) {
		t.Errorf("launch: got %d machines and %v, want ErrExists", len(machines), err)
	}
	if got := len(list(t, c.First, 0)); got != 1 {
		t.Errorf("%d machines live, want 1", got)
	}
}

func testConcurrent(t *testing.T, c Cloud) {
	const callers, hosts = 16, 3
	sets := make([][]lifecycle.Machine, callers)
	var wg sync.WaitGroup
	for i := range callers {
		client := c.First
		if i%2 == 1 {
			client = c.Second
		}
		wg.Go(func() {
			machines, err := client.Launch(t.Context(), order("q", 1, hosts))
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
			sets[i] = machines
		})
	}
	wg.Wait()
	for i, set := range sets {
		if diff := cmp.Diff(sets[0], set, ignoreState); diff != "" || len(set) != hosts {
			t.Errorf("caller %d was given another set (-first +its):\n%s", i, diff)
		}
	}
	if got := len(list(t, c.First, 0)); got != hosts {
		t.Errorf("%d machines live, want %d", got, hosts)
	}
}

func testLaunched(t *testing.T, c Cloud) {
	second := launch(t, c.First, order("q", 2, 2))
	launch(t, c.First, order("q", 1, 1))
	launch(t, c.First, order("p", 2, 1))
	otherRun := order("q", 2, 1)
	otherRun.RunID, otherRun.Token = "78", "of another run"
	launch(t, c.First, otherRun)
	terminate(t, c.First, second[0].InstanceID)
	find := func(requestID string, number int) []lifecycle.Machine {
		machines, err := c.Second.Launched(t.Context(), order(requestID, number, 0))
		if err != nil {
			t.Fatalf("launched: %v", err)
		}
		return machines
	}
	byID := cmpopts.SortSlices(func(a, b lifecycle.Machine) bool { return a.InstanceID < b.InstanceID })
	if diff := cmp.Diff(second, find("q", 2), ignoreState, byID); diff != "" {
		t.Errorf("found, with one that is gone (-launched +found):\n%s", diff)
	}
	if got := find("q", 3); len(got) != 0 {
		t.Errorf("a launch that was not made: found %v", idsOf(got))
	}
}

func testUnknown(t *testing.T, c Cloud) {
	known := launch(t, c.First, order("q", 1, 1))[0].InstanceID
	unknown := []string{"i-00000000000000000", "../hosts", "", known + "/.."}
	for i, m := range describe(t, c.Second, unknown...) {
		want := lifecycle.Machine{InstanceID: unknown[i], State: lifecycle.MachineGone}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("unknown machine (-want +got):\n%s", diff)
		}
	}
	terminate(t, c.Second, unknown...)
	mixed := describe(t, c.First, unknown[0], known)
	if mixed[0].State != lifecycle.MachineGone || mixed[1].State == lifecycle.MachineGone || mixed[1].InstanceID != known {
		t.Errorf("one unknown and one that lives: got %+v", mixed)
	}
	if got := describe(t, c.First); len(got) != 0 {
		t.Errorf("describe nothing: got %+v", got)
	}
}

func testList(t *testing.T, c Cloud) {
	machines := launch(t, c.First, order("q", 1, 5))
	ids := idsOf(machines)
	slices.Sort(ids)
	for _, limit := range []int{0, 1, 2, 5, 6} {
		if diff := cmp.Diff(ids, idsOf(list(t, c.Second, limit))); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
	terminate(t, c.First, ids[0], ids[4])
	awaitState(t, c.First, ids[4], lifecycle.MachineGone)
	if diff := cmp.Diff(ids[1:4], idsOf(list(t, c.Second, 2))); diff != "" {
		t.Errorf("after two were terminated (-want +got):\n%s", diff)
	}
	got, err := c.First.List(t.Context(), lifecycle.PageOf{After: ids[1], Limit: 1})
	if err != nil || len(got.Items) != 1 || got.Items[0].InstanceID != ids[2] {
		t.Errorf("list after %s: got %+v, %v", ids[1], got, err)
	}
}

// testBypass: the tag counts with the value true, exactly.
func testBypass(t *testing.T, c Cloud) {
	ids := idsOf(launch(t, c.First, order("q", 1, 3)))
	slices.Sort(ids)
	c.Tag(ids[0], "true")
	c.Tag(ids[1], "True")
	for _, replica := range []Compute{c.First, c.Second} {
		var got []bool
		for _, m := range list(t, replica, 0) {
			got = append(got, m.Bypass)
		}
		if diff := cmp.Diff([]bool{true, false, false}, got); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
	}
	if !describe(t, c.Second, ids[0])[0].Bypass {
		t.Error("described without it")
	}
}

func testTerminate(t *testing.T, c Cloud) {
	ids := idsOf(launch(t, c.First, order("q", 1, 2)))
	c.Boot(ids[0])
	for range 2 {
		terminate(t, c.First, ids[0])
		terminate(t, c.Second, ids[0], ids[0])
	}
	awaitState(t, c.First, ids[0], lifecycle.MachineGone)
	if got := describe(t, c.First, ids[1])[0].State; got == lifecycle.MachineGone {
		t.Error("the other machine is gone as well")
	}
	if !describe(t, c.Second, ids[0])[0].Shown() {
		t.Error("a machine that has just ended is not shown, as one that is unknown")
	}
	if err := c.First.Terminate(t.Context(), nil); err != nil {
		t.Errorf("terminate nothing: %v", err)
	}
}

func testNoRevival(t *testing.T, c Cloud) {
	first := launch(t, c.First, order("q", 1, 2))
	terminate(t, c.First, first[0].InstanceID)
	awaitState(t, c.First, first[0].InstanceID, lifecycle.MachineGone)
	again := launch(t, c.Second, order("q", 1, 2))
	if diff := cmp.Diff(first, again, ignoreState); diff != "" {
		t.Errorf("the same order again (-first +second):\n%s", diff)
	}
	if again[0].State != lifecycle.MachineGone {
		t.Errorf("a terminated machine is %s again", again[0].State)
	}
	if got := len(list(t, c.First, 0)); got != 1 {
		t.Errorf("%d machines live, want 1", got)
	}
}

func testFallThrough(t *testing.T, c Cloud) {
	var got []string
	for _, m := range launch(t, c.First, order("q", 1, 3)) {
		got = append(got, m.InstanceType)
	}
	if diff := cmp.Diff([]string{types[0], types[1], types[1]}, got); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

func testShortage(t *testing.T, c Cloud) {
	machines, short := launchShort(t, c.First, order("q", 1, 3))
	if len(machines) != 2 || short.Ordered != 3 || short.Got != 2 {
		t.Fatalf("got %d machines and %+v", len(machines), short)
	}
	for _, named := range []string{types[0], types[1], machines[0].Zone} {
		if !strings.Contains(short.Reason, named) {
			t.Errorf("why %q does not name %s", short.Reason, named)
		}
	}
	if none, short := launchShort(t, c.Second, order("p", 1, 1)); len(none) != 0 || short.Got != 0 {
		t.Errorf("at capacity: got %v and %+v", idsOf(none), short)
	}
	terminate(t, c.First, machines[0].InstanceID)
	awaitState(t, c.First, machines[0].InstanceID, lifecycle.MachineGone)
	launch(t, c.Second, order("p", 2, 1))
}

func launchShort(t *testing.T, c Compute, o lifecycle.LaunchOrder) ([]lifecycle.Machine, *lifecycle.ShortageError) {
	t.Helper()
	machines, err := c.Launch(t.Context(), o)
	var short *lifecycle.ShortageError
	if !errors.As(err, &short) {
		t.Fatalf("launch %s: got %d machines and %v, want a shortage", o.Token, len(machines), err)
	}
	return machines, short
}

// testShortageRepeat: two replicas that make the same order must not be given
// different sets because capacity came back between their calls.
func testShortageRepeat(t *testing.T, c Cloud) {
	first, _ := launchShort(t, c.First, order("q", 1, 2))
	terminate(t, c.First, first[0].InstanceID)
	awaitState(t, c.First, first[0].InstanceID, lifecycle.MachineGone)
	again, _ := launchShort(t, c.Second, order("q", 1, 2))
	if diff := cmp.Diff(first, again, ignoreState); diff != "" {
		t.Errorf("the same order again (-first +second):\n%s", diff)
	}
}

func testNothingFits(t *testing.T, c Cloud) {
	o := order("q", 1, 2)
	o.InstanceTypes = []string{"g5.*"}
	machines, short := launchShort(t, c.First, o)
	if len(machines) != 0 || !strings.Contains(short.Reason, "g5.*") {
		t.Errorf("got %v and %+v", idsOf(machines), short)
	}
	o = order("q", 2, 2)
	o.PoolTypes = []string{"p5.*"}
	machines, short = launchShort(t, c.First, o)
	if len(machines) != 0 || !strings.Contains(short.Reason, "p5.*") {
		t.Errorf("with a pool that allows nothing there is: got %v and %+v", idsOf(machines), short)
	}
}

func testBadOrder(t *testing.T, c Cloud) {
	bad := order("q", 1, 1)
	bad.InstanceTypes = []string{"c6i.*", "c[6"}
	_, err := c.First.Launch(t.Context(), bad)
	if err == nil || !strings.Contains(err.Error(), `"c[6"`) {
		t.Errorf("bad pattern: got %v, want an error that names it", err)
	}
	if _, err := c.First.Launch(t.Context(), order("q", 2, 0)); err == nil {
		t.Error("an order of 0 machines: got no error")
	}
	if got := len(list(t, c.First, 0)); got != 0 {
		t.Errorf("%d machines live, want none", got)
	}
}

func testCancelled(t *testing.T, c Cloud) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.First.Launch(ctx, order("q", 1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("launch: got %v, want context.Canceled", err)
	}
	if got := len(list(t, c.Second, 0)); got != 0 {
		t.Errorf("%d machines live, want none", got)
	}
}
