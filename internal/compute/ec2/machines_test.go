package ec2_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

func states(t testing.TB, machines []lifecycle.Machine, err error) []lifecycle.MachineState {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var list []lifecycle.MachineState
	for _, m := range machines {
		list = append(list, m.State)
	}
	return list
}

const (
	pending = lifecycle.MachinePending
	running = lifecycle.MachineRunning
	gone    = lifecycle.MachineGone
)

func TestAMachineThatEC2DoesNotShowYetIsNotGone(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	var now clock
	w := newWorld(t)
	o := w.options()
	o.Now = now.now
	c := w.ready(t, o)
	w.HideNew()
	machines := launch(t, c, order(t, c, 1, 2))
	two := []lifecycle.MachineState{pending, pending}
	equal(t, "launched", two, states(t, machines, nil))
	for _, m := range machines {
		if m.HostKey != roleID+":"+m.InstanceID || m.CPU != 2 || m.MemoryMiB != 4096 || !strings.HasPrefix(m.Zone, region) || m.RunID != "77" || m.LaunchedAt.IsZero() {
			t.Errorf("what the answer tells is not all there: %+v", m)
		}
	}
	describe := func() []lifecycle.MachineState {
		t.Helper()
		described, err := c.Describe(t.Context(), ids(machines))
		return states(t, described, err)
	}
	equal(t, "described", two, describe())
	found, err := c.Launched(t.Context(), order(t, c, 1, 0))
	equal(t, "found", two, states(t, found, err))
	none, err := c.Launched(t.Context(), order(t, c, 2, 0))
	equal(t, "found of another launch", []lifecycle.MachineState(nil), states(t, none, err))
	w.Show()
	equal(t, "shown", []lifecycle.MachineState{running, running}, describe())
	w.HideNew()
	machines = launch(t, c, order(t, c, 2, 2))
	now.seconds.Add(int64(4 * time.Minute / time.Second))
	equal(t, "never shown", []lifecycle.MachineState{gone, gone}, describe())
}

// EC2 launches what it cannot start, and says why only with the instance that has ended.
func TestWhyAMachineEnded(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	w.EndNew("Client.InvalidKMSKey.InvalidState", "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state")
	dead := launch(t, c, order(t, c, 1, 1))
	described, err := c.Describe(t.Context(), ids(dead))
	equal(t, "state", []lifecycle.MachineState{gone}, states(t, described, err))
	equal(t, "reason", "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state; allow the launch to use the KMS key of its volumes (docs/iam)",
		described[0].EndReason)
}

func TestManyMachinesAreDescribedInBatches(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	machines := launch(t, c, order(t, c, 1, 3))
	var asked []string
	for i := range 450 {
		asked = append(asked, fmt.Sprintf("i-%017x", i))
	}
	asked[0], asked[200], asked[449] = machines[0].InstanceID, machines[1].InstanceID, machines[2].InstanceID
	before := len(w.proxy.Calls())
	described, err := c.Describe(t.Context(), asked)
	equal(t, "ids", asked, ids(described))
	for i, state := range states(t, described, err) {
		want := gone
		if i == 0 || i == 200 || i == 449 {
			want = running
		}
		equal(t, asked[i], want, state)
	}
	equal(t, "calls", []string{"DescribeInstances", "DescribeInstances", "DescribeInstances", "DescribeInstanceStatus"}, w.operations(before))
}

// EC2 may give fewer instances than a page can hold, with a token for the rest. A machine on a later page is not gone.
func TestShortPages(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	var all []lifecycle.Machine
	for n := 1; n <= 3; n++ {
		all = append(all, launch(t, c, order(t, c, n, 2))...)
	}
	w.ShortPages(1)
	described, err := c.Describe(t.Context(), ids(all))
	equal(t, "described", slices.Repeat([]lifecycle.MachineState{running}, 6), states(t, described, err))
	page, err := c.List(t.Context(), lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	listed := slices.Sorted(slices.Values(ids(all)))
	equal(t, "listed", listed, ids(page.Items))
}

// The status of machines is asked for in batches, too.
func TestManyMachinesAreCheckedInBatches(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	machines := launch(t, c, order(t, c, 1, 101))
	w.Impair(machines[100].InstanceID)
	described, err := c.Describe(t.Context(), ids(machines))
	if err != nil {
		t.Fatal(err)
	}
	if !described[100].Impaired || described[99].Impaired {
		t.Errorf("%+v", described[99:])
	}
}

func TestImpairedMachines(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	machines := launch(t, c, order(t, c, 1, 3))
	w.Impair(machines[1].InstanceID)
	look := func() []bool {
		t.Helper()
		described, err := c.Describe(t.Context(), ids(machines))
		if err != nil {
			t.Fatal(err)
		}
		var impaired []bool
		for _, m := range described {
			impaired = append(impaired, m.Impaired)
		}
		return impaired
	}
	equal(t, "impaired", []bool{false, true, false}, look())
	// One that ends between the two calls leaves it unknown, which is not impaired.
	w.fail("DescribeInstanceStatus", "InvalidInstanceID.NotFound")
	equal(t, "impaired when one is gone meanwhile", []bool{false, false, false}, look())
	// A stopped one does nothing, and does not end by itself.
	if _, err := w.client.StopInstances(t.Context(), &service.StopInstancesInput{InstanceIds: ids(machines[:1])}); err != nil {
		t.Fatal(err)
	}
	equal(t, "impaired when one was stopped", []bool{true, false, false}, look())
}

func TestAPoisonedBatchIsEndedOneByOne(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	machines := launch(t, c, order(t, c, 1, 3))
	_, err := w.client.ModifyInstanceAttribute(t.Context(), &service.ModifyInstanceAttributeInput{
		InstanceId: sdk.String(machines[1].InstanceID), DisableApiTermination: &types.AttributeBooleanValue{Value: sdk.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	const unknown = "i-00000000000000000"
	err = c.Terminate(t.Context(), append([]string{unknown, "i-*", ""}, ids(machines)...))
	if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), machines[1].InstanceID) || strings.Contains(err.Error(), unknown) {
		t.Errorf("got %v, want one error, about %s", err, machines[1].InstanceID)
	}
	described, err := c.Describe(t.Context(), ids(machines))
	equal(t, "states", []lifecycle.MachineState{gone, running, gone}, states(t, described, err))
	for _, m := range described {
		if ended := time.Since(m.EndedAt); m.State == gone && (ended < -time.Second || ended > time.Minute) || m.State != gone && !m.EndedAt.IsZero() {
			t.Errorf("%s is %s since %s", m.InstanceID, m.State, m.EndedAt)
		}
	}
	if err := c.Terminate(t.Context(), []string{unknown}); err != nil {
		t.Errorf("one that is unknown: %v", err)
	}
}

func TestAnOutageIsNoPoison(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	machines := launch(t, c, order(t, c, 1, 3))
	w.proxy.Inject(awstest.Fault{Service: "ec2", Operation: "TerminateInstances", Kind: awstest.InternalError})
	if err := c.Terminate(t.Context(), ids(machines)); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	w.proxy.Heal()
	first := w.calls("TerminateInstances")
	if err := c.Terminate(t.Context(), ids(machines)); err != nil || w.calls("TerminateInstances") != first+1 {
		t.Errorf("after it: %v, and %d calls", err, w.calls("TerminateInstances")-first)
	}
	if first > 5 { // the tries of one call
		t.Errorf("%d calls while EC2 was away", first)
	}
}

func TestAListingIsReadOnce(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	var now clock
	w := newWorld(t)
	o := w.options()
	o.Now = now.now
	c := w.ready(t, o)
	other := w.options()
	other.Prefix = "other"
	foreign := w.ready(t, other)
	launch(t, foreign, order(t, foreign, 2, 1)) // tokens are the account's
	all := ids(launch(t, c, order(t, c, 1, 5)))
	slices.Sort(all)
	before := w.calls("DescribeInstances")
	list := func(after string) ([]string, string) {
		t.Helper()
		page, err := c.List(t.Context(), lifecycle.PageOf{After: after, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		return ids(page.Items), page.Next
	}
	first, next := list("")
	second, last := list(next)
	equal(t, "two pages", all[:4], append(first, second...))
	equal(t, "calls", 1, w.calls("DescribeInstances")-before)
	// Who comes back late gets the rest as it is now.
	if err := c.Terminate(t.Context(), all[4:]); err != nil {
		t.Fatal(err)
	}
	now.seconds.Add(61)
	third, end := list(last)
	equal(t, "the last page", []string(nil), third)
	equal(t, "the end", "", end)
}

func TestAbsentPermissionsAreNamed(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	for _, operation := range []string{"DescribeInstances", "DescribeInstanceStatus", "TerminateInstances", "DescribeSubnets", "DescribeLaunchTemplates"} {
		t.Run(operation, func(t *testing.T) {
			w := newWorld(t)
			before := w.ready(t, w.options())
			machine := launch(t, before, order(t, before, 1, 1))[0].InstanceID
			o := order(t, before, 2, 1)
			w.deny(operation)
			c := w.open(t, w.options())
			_, launched := c.Launch(t.Context(), o)
			_, described := c.Describe(t.Context(), []string{machine})
			_, template := c.Template(t.Context(), "default")
			err := errors.Join(launched, described, template, c.Terminate(t.Context(), []string{machine}))
			if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), "allow the action ec2:"+operation+" (docs/iam)") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// People copy tags with "Launch more like this", and so does what builds images. What has our tag and was not launched
// by us is foreign, and is logged once.
func TestAMachineWithOurTagAloneIsForeign(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	var logs bytes.Buffer
	o := w.options()
	o.Logger = hclog.New(&hclog.LoggerOptions{Output: &logs})
	c := w.ready(t, o)
	ours := launch(t, c, order(t, c, 1, 1))[0]
	foreign := func(order bool, profile string) string {
		tags := []types.Tag{{Key: sdk.String(ec2.TagFleet), Value: sdk.String(prefix)}}
		if order {
			tags = append(tags, types.Tag{Key: sdk.String(ec2.TagOrder), Value: sdk.String("copied")})
		}
		input := &service.RunInstancesInput{
			ImageId: sdk.String(w.images[catalogue.LocalArch()]), MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1),
			InstanceType:      types.InstanceTypeM5Large,
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: tags}},
		}
		if profile != "" {
			input.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: &profile}
		}
		out, err := w.client.RunInstances(t.Context(), input)
		if err != nil {
			t.Fatal(err)
		}
		return *out.Instances[0].InstanceId
	}
	// What is launched by hand may have the profile of the hosts too.
	profile := &iam.CreateInstanceProfileInput{InstanceProfileName: sdk.String("remuda-host")}
	if _, err := iam.NewFromConfig(awstest.Config(t, w.proxy.URL())).CreateInstanceProfile(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{ours.InstanceID: false, foreign(false, ""): true, foreign(true, ""): true, foreign(false, "remuda-host"): true}
	for range 2 {
		page, err := c.List(t.Context(), lifecycle.PageOf{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, m := range page.Items {
			got[m.InstanceID] = m.Foreign
		}
		equal(t, "foreign machines", want, got)
	}
	if err := c.Terminate(t.Context(), []string{ours.InstanceID}); err != nil {
		t.Fatal(err)
	}
	ended, err := c.Describe(t.Context(), []string{ours.InstanceID})
	if err != nil || ended[0].Foreign {
		t.Errorf("of a host that has ended: %+v, error %v", ended, err)
	}
	if n := strings.Count(logs.String(), "is not ours"); n != 3 {
		t.Errorf("it was logged %d times:\n%s", n, logs.String())
	}
}
