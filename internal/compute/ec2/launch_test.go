package ec2_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

func launch(t testing.TB, c *ec2.Compute, o lifecycle.LaunchOrder) []lifecycle.Machine {
	t.Helper()
	machines, err := c.Launch(t.Context(), o)
	if err != nil || len(machines) != o.Count {
		t.Fatalf("launch: got %d machines and %v", len(machines), err)
	}
	return machines
}

func ids(machines []lifecycle.Machine) []string {
	var list []string
	for _, m := range machines {
		list = append(list, m.InstanceID)
	}
	return list
}

var ignoreState = cmpopts.IgnoreFields(lifecycle.Machine{}, "State")

func TestTwoHundredHostsInOneOrder(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	before := len(w.proxy.Calls())
	machines := launch(t, c, order(t, c, 1, 200))
	equal(t, "calls", []string{"CreateFleet", "DescribeInstances"}, w.operations(before))
	unique := map[string]bool{}
	zones := map[string]int{}
	for _, m := range machines {
		unique[m.InstanceID] = true
		zones[m.Zone]++
		if m.HostKey != roleID+":"+m.InstanceID || m.RequestID != "q" || m.Launch != 1 || m.Pool != "default" {
			t.Errorf("machine without its tags: %+v", m)
		}
	}
	equal(t, "ids and zones", []int{200, 100, 100}, []int{len(unique), zones["us-east-1a"], zones["us-east-1b"]})
	want := []string{
		"remuda:fleet", "remuda:launch", "remuda:order", "remuda:pool", "remuda:repository", "remuda:request-id", "remuda:resource-class",
		"remuda:role", "remuda:run-id", "remuda:template-version", "team",
	}
	for _, i := range w.living(t) {
		var keys []string
		for _, tag := range i.Tags {
			if !strings.HasPrefix(*tag.Key, "aws:") {
				keys = append(keys, *tag.Key)
			}
		}
		slices.Sort(keys)
		equal(t, "tags of "+*i.InstanceId, want, keys)
	}
	found, err := c.Launched(t.Context(), order(t, c, 1, 200))
	if err != nil || len(found) != 200 {
		t.Errorf("launched: got %d, %v", len(found), err)
	}
	before = len(w.proxy.Calls())
	if err := c.Terminate(t.Context(), ids(machines)); err != nil {
		t.Fatal(err)
	}
	equal(t, "calls of the end", []string{"TerminateInstances", "TerminateInstances"}, w.operations(before))
	equal(t, "left", 0, len(w.living(t)))
}

// operations are the calls since the first n.
func (w world) operations(n int) []string {
	var list []string
	for _, c := range w.proxy.Calls()[n:] {
		list = append(list, c.Operation)
	}
	return list
}

func TestSpotIsSpot(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	o := order(t, c, 1, 2)
	o.UsageClass = lifecycle.UsageSpot
	for _, m := range launch(t, c, o) {
		equal(t, "usage class", lifecycle.UsageSpot, m.UsageClass)
	}
	for _, i := range w.living(t) {
		equal(t, "lifecycle", "spot", string(i.InstanceLifecycle))
	}
}

func TestBothArchitecturesOfAPoolAreLaunched(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, pool(w.options(), func(p *ec2.Pool) {
		p.Images, p.Subnets = w.images, nil
		for _, s := range w.subnets {
			p.Subnets = append(p.Subnets, *s.SubnetId)
		}
	}))
	for number, types := range [][]string{{"c7i.*"}, {"c7g.*"}} {
		o := order(t, c, number+1, 1)
		o.InstanceTypes = types
		want := []string{catalogue.ArchX86, catalogue.ArchArm}[number]
		for _, m := range launch(t, c, o) {
			equal(t, "architecture and version", []string{want, "1/1"}, []string{m.Arch, m.TemplateVersion})
		}
	}
}

func TestBurstableTypesOnlyIfThePoolAsks(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	for number, burstable := range []bool{false, true} {
		c := w.ready(t, pool(w.options(), func(p *ec2.Pool) { p.Burstable = burstable }))
		o := order(t, c, number+1, 1)
		o.InstanceTypes = []string{"t3.*", "t4g.*"}
		machines, err := c.Launch(t.Context(), o)
		var short *lifecycle.ShortageError
		if got := errors.As(err, &short); got == burstable {
			t.Errorf("burstable %t: got %v, %v", burstable, ids(machines), err)
		}
		// The catalogue does not know the type, so EC2 was asked.
		for _, m := range machines {
			equal(t, "size", []int{2, 4096}, []int{m.CPU, m.MemoryMiB})
		}
	}
}

func TestNoFaultMakesASecondFleet(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	faults := []awstest.Fault{
		{Operation: "DescribeSubnets", Kind: awstest.InternalError},
		{Operation: "DescribeInstances", Kind: awstest.LostAfterSuccess},
	}
	for _, kind := range awstest.Kinds {
		faults = append(faults, awstest.Fault{Operation: "CreateFleet", Kind: kind})
	}
	for _, fault := range faults {
		t.Run(fault.Kind.String()+" of "+fault.Operation, func(t *testing.T) {
			w := newWorld(t)
			w.ready(t, w.options())
			c := w.open(t, w.options())
			o := order(t, c, 1, 2)
			fault.Service, fault.Nth = "ec2", 1
			w.proxy.Inject(fault)
			machines := launch(t, c, o)
			equal(t, "launched", len(machines), len(w.living(t)))
		})
	}
}

func TestALaunchWithoutAnAnswerIsRepeatedWithItsToken(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	o := order(t, c, 1, 2)
	w.proxy.Inject(awstest.Fault{Service: "ec2", Operation: "CreateFleet", Kind: awstest.LostAfterSuccess})
	if _, err := c.Launch(t.Context(), o); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	w.proxy.Heal()
	machines := launch(t, w.open(t, w.options()), o)
	equal(t, "launched", len(machines), len(w.living(t)))
}

// Between a crash and the repeat of its launch, an operator changed the
// configuration, so that the same order would be another call.
func TestALaunchOfAnotherConfigurationIsFound(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	o := order(t, w.ready(t, w.options()), 1, 2)
	first := launch(t, w.open(t, w.options()), o)
	changed := w.open(t, pool(w.options(), func(p *ec2.Pool) { p.Tags = nil }))
	machines, err := changed.Launch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	byID := cmpopts.SortSlices(func(a, b lifecycle.Machine) bool { return a.InstanceID < b.InstanceID })
	equal(t, "machines", first, machines, ignoreState, byID)

	w.SetLimits(ec2gap.Limit{Most: 3})
	o = order(t, changed, 2, 3)
	short(t, w.open(t, w.options()), o, 1)
	why := short(t, changed, o, 1).Reason
	equal(t, "why", "the launch was made before under another configuration and gave no more", why)
	equal(t, "living", 3, len(w.living(t)))
}

// short launches what must give fewer than ordered.
func short(t testing.TB, c *ec2.Compute, o lifecycle.LaunchOrder, want int) *lifecycle.ShortageError {
	t.Helper()
	machines, err := c.Launch(t.Context(), o)
	var e *lifecycle.ShortageError
	if !errors.As(err, &e) {
		t.Fatalf("got %d machines and %v, want a shortage", len(machines), err)
	}
	equal(t, "machines, ordered and got", []int{want, o.Count, want}, []int{len(machines), e.Ordered, e.Got})
	return e
}

func TestWhatIsShortIsSaid(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	only := []string{"c6i.large", "m6i.large"}
	if catalogue.LocalArch() == catalogue.ArchArm {
		only = []string{"c6g.large", "m6g.large"}
	}
	tests := map[string]struct {
		limits []ec2gap.Limit
		change func(*lifecycle.LaunchOrder)
		got    int
		want   string
	}{
		"capacity": {[]ec2gap.Limit{{Most: 0}}, nil, 0,
			"no on-demand capacity of " + only[0] + ", " + only[1] + " in us-east-1a, us-east-1b (InsufficientInstanceCapacity)"},
		"a part of it": {[]ec2gap.Limit{{Types: only[0], Most: 1}, {Types: only[1], Most: 1}}, nil, 2,
			"no on-demand capacity of " + only[0] + ", " + only[1] + " in us-east-1a, us-east-1b (InsufficientInstanceCapacity)"},
		"a quota": {[]ec2gap.Limit{{Most: 1, Code: "VcpuLimitExceeded"}}, nil, 1,
			"the account's quota of vCPU of this kind of instance is used up (VcpuLimitExceeded): end what is not needed, or raise it in Service Quotas"},
		"too many fleets": {[]ec2gap.Limit{{Most: 0, Code: "MaxFleetCountExceeded"}}, nil, 0,
			"the account's quota of fleets is used up (MaxFleetCountExceeded): end what is not needed, or raise it in Service Quotas"},
		"spot without its role": {[]ec2gap.Limit{{Most: 0, Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted"}},
			func(o *lifecycle.LaunchOrder) { o.UsageClass = lifecycle.UsageSpot }, 0,
			"no spot capacity of " + only[0] + ", " + only[1] + " in us-east-1a, us-east-1b (AuthFailure.ServiceLinkedRoleCreationNotPermitted); " +
				"create the role once, with aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"},
		"no pattern of a type": {nil, func(o *lifecycle.LaunchOrder) { o.InstanceTypes = []string{"x9*"} }, 0,
			"EC2 sells no on-demand machines of x9* with 2 vCPU and 4096 MiB in us-east-1a, us-east-1b (InvalidParameterValue): allow other types or sizes, " +
				"which the architectures of the images of pool default have, or add subnets in other zones to the pool"},
		"nothing that the pool allows": {nil, func(o *lifecycle.LaunchOrder) { o.PoolTypes = []string{"r*"} }, 0,
			"no type that the request allows (" + only[0] + ", " + only[1] + ") is one that pool default allows (r*)"},
		"a version that is gone": {nil, func(o *lifecycle.LaunchOrder) { o.TemplateVersion = "9" }, 0,
			"version 9 of the launch template of pool default is gone; the next launch takes the current one"},
		"a version that is none": {nil, func(o *lifecycle.LaunchOrder) { o.TemplateVersion = "" }, 0,
			`template version "": not a version of a launch template`},
		"two reasons": {[]ec2gap.Limit{{Types: only[0], Most: 1}, {Types: only[1], Most: 1, Code: "SpotMaxPriceTooLow"}},
			func(o *lifecycle.LaunchOrder) { o.UsageClass = lifecycle.UsageSpot }, 2,
			"no spot capacity of " + only[0] + " in us-east-1a, us-east-1b (InsufficientInstanceCapacity); " +
				"no spot capacity of " + only[1] + " in us-east-1a, us-east-1b (SpotMaxPriceTooLow)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.ready(t, w.options())
			w.SetLimits(test.limits...)
			o := order(t, c, 1, 3)
			o.InstanceTypes = only
			if test.change != nil {
				test.change(&o)
			}
			equal(t, "why", test.want, short(t, c, o, test.got).Reason)
			equal(t, "living", test.got, len(w.living(t)))
		})
	}
}

// EC2 may refuse the whole call for want of a type that fits. It is still a shortage: spot falls back to on-demand.
func TestNoPoolsInACallIsAShortage(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	o := order(t, c, 1, 2)
	o.UsageClass, o.InstanceTypes = lifecycle.UsageSpot, []string{"x9*"}
	equal(t, "why", "EC2 sells no spot machines of x9* with 2 vCPU and 4096 MiB in us-east-1a, us-east-1b (InvalidParameterValue): allow other types or sizes, "+
		"which the architectures of the images of pool default have, or add subnets in other zones to the pool", short(t, c, o, 0).Reason)
	equal(t, "exhausted", []lifecycle.Offering(nil), c.Exhausted(lifecycle.UsageSpot))
	o.Number, o.Token, o.InstanceTypes = 2, "q/2", []string{"c*"}
	launch(t, c, o)
}

// It may also answer such a call, with a code in its Errors.
func TestNoPoolsInAnAnswerIsAShortage(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	w.AnswerUnmatched()
	o := order(t, c, 1, 2)
	o.UsageClass, o.InstanceTypes = lifecycle.UsageSpot, []string{"x9*"}
	equal(t, "why", "no spot capacity of x9* with 2 vCPU and 4096 MiB (UnfulfillableCapacity)", short(t, c, o, 0).Reason)
}

// The code alone says nothing: what else is wrong with a call stays refused.
func TestOverlappingRequirementsAreRefused(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	o := order(t, c, 1, 2)
	w.proxy.Handle("ec2", "CreateFleet", func(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		awstest.Fail(rw, r, http.StatusBadRequest, "InvalidParameterValue",
			"Two or more of your InstanceRequirements structures include overlapping values. Ensure that there is no overlap, and try again.")
	})
	machines, err := c.Launch(t.Context(), o)
	if len(machines) > 0 || !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), "overlapping values") {
		t.Errorf("got %d machines and %v, want ErrRefused", len(machines), err)
	}
}

func TestWhatNoLaterOrderCuresIsRefused(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	tests := map[string]struct {
		break_ func(t *testing.T, w world)
		want   []string
	}{
		"the image is gone": {func(t *testing.T, w world) {
			_, err := w.client.DeregisterImage(t.Context(), &service.DeregisterImageInput{ImageId: sdk.String(w.images[catalogue.LocalArch()])})
			if err != nil {
				t.Fatal(err)
			}
		}, []string{"InvalidAMIID", "build a new image, or correct the images of pool default, and run Refresh"}},
		"the template is gone": {func(t *testing.T, w world) {
			_, err := w.client.DeleteLaunchTemplate(t.Context(), &service.DeleteLaunchTemplateInput{LaunchTemplateName: sdk.String(templateName)})
			if err != nil {
				t.Fatal(err)
			}
		}, []string{"InvalidLaunchTemplateName.NotFoundException", "run Refresh"}},
		"the role may not be passed on": {func(_ *testing.T, w world) {
			w.SetLimits(ec2gap.Limit{Most: 0, Code: "UnauthorizedOperation"})
		}, []string{"iam:PassRole"}},
		"the call is not allowed":  {func(_ *testing.T, w world) { w.deny("CreateFleet") }, []string{"allow the action ec2:CreateFleet (docs/iam)"}},
		"two subnets of one zone":  {func(_ *testing.T, w world) { w.fail("CreateFleet", "InvalidFleetConfig") }, []string{"correct the subnets of pool default"}},
		"the profile is not there": {func(_ *testing.T, w world) { w.fail("CreateFleet", "InvalidParameterValue") }, []string{"instance profile"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.ready(t, w.options())
			o := order(t, c, 1, 2)
			test.break_(t, w)
			machines, err := c.Launch(t.Context(), o)
			if len(machines) > 0 || !errors.Is(err, lifecycle.ErrRefused) {
				t.Fatalf("got %d machines and %v, want ErrRefused", len(machines), err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

// ec2gap refuses what EC2 does and moto does not, so that no launch of a test has it.
func TestLaunchesThatEC2Refuses(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	volume := func(change func(*types.LaunchTemplateEbsBlockDeviceRequest)) func(*types.RequestLaunchTemplateData) {
		ebs := &types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: types.VolumeTypeGp3, VolumeSize: sdk.Int32(15)}
		change(ebs)
		return func(d *types.RequestLaunchTemplateData) {
			d.BlockDeviceMappings = []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: sdk.String("/dev/sda1"), Ebs: ebs}}
		}
	}
	tagged := func(key string, in types.LaunchTemplateInstanceMetadataTagsState) func(*types.RequestLaunchTemplateData) {
		return func(d *types.RequestLaunchTemplateData) {
			volume(func(*types.LaunchTemplateEbsBlockDeviceRequest) {})(d)
			d.MetadataOptions = &types.LaunchTemplateInstanceMetadataOptionsRequest{InstanceMetadataTags: in}
			d.TagSpecifications = []types.LaunchTemplateTagSpecificationRequest{{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{tag(key, "x")}}}
		}
	}
	userData := func(n int) func(*types.RequestLaunchTemplateData) {
		return func(d *types.RequestLaunchTemplateData) {
			volume(func(*types.LaunchTemplateEbsBlockDeviceRequest) {})(d)
			d.UserData = sdk.String(base64.StdEncoding.EncodeToString(make([]byte, n)))
		}
	}
	for name, test := range map[string]struct {
		edit func(*types.RequestLaunchTemplateData)
		want string // empty: it is launched
	}{
		"a small volume":       {volume(func(v *types.LaunchTemplateEbsBlockDeviceRequest) { v.VolumeSize = sdk.Int32(14) }), "expect size >= 15GB"},
		"many IOPS":            {volume(func(v *types.LaunchTemplateEbsBlockDeviceRequest) { v.Iops = sdk.Int32(7501) }), "maximum is 500 IOPS per GiB"},
		"as many as there are": {volume(func(v *types.LaunchTemplateEbsBlockDeviceRequest) { v.Iops = sdk.Int32(7500) }), ""},
		"much throughput":      {volume(func(v *types.LaunchTemplateEbsBlockDeviceRequest) { v.Throughput = sdk.Int32(751) }), "maximum is 0.250000 MiBps per iops"},
		"as much as there is":  {volume(func(v *types.LaunchTemplateEbsBlockDeviceRequest) { v.Throughput = sdk.Int32(750) }), ""},
		"a tag with a space":   {tagged("cost center", "enabled"), "'cost center' is not a valid tag key"},
		"a tag with a slash":   {tagged("acme.com/team", "enabled"), "'acme.com/team' is not a valid tag key"},
		"one without metadata": {tagged("acme.com/team", "disabled"), ""},
		"long user data":       {userData(16385), "User data is limited to 16384 bytes"},
		"shorter user data":    {userData(16384), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ready(t, w.options())
			w.edit(t, true, test.edit)
			c := w.open(t, w.options())
			machines, err := c.Launch(t.Context(), order(t, c, 1, 1))
			refused := errors.Is(err, lifecycle.ErrRefused) && strings.Contains(err.Error(), test.want)
			if refused != (test.want != "") || (err == nil) != (len(machines) == 1) {
				t.Errorf("got %d machines and %v, want %q", len(machines), err, test.want)
			}
		})
	}
}

// The same of calls that controld never makes.
func TestCallsThatEC2Refuses(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	w.ready(t, w.options())
	call := func(change func(*service.CreateFleetInput)) string {
		in := &service.CreateFleetInput{
			Type: types.FleetTypeInstant, TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: sdk.Int32(1)},
			LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
				LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: sdk.String(templateName), Version: sdk.String("1")},
			}},
		}
		for _, resource := range []types.ResourceType{"fleet", "instance", "volume", "network-interface"} {
			in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: resource, Tags: []types.Tag{tag("remuda:fleet", prefix)}})
		}
		change(in)
		_, err := w.client.CreateFleet(t.Context(), in)
		return aws.Code(err)
	}
	equal(t, "two specifications of instances", "InvalidParameterValue", call(func(in *service.CreateFleetInput) {
		in.TagSpecifications = append(in.TagSpecifications, in.TagSpecifications[1])
	}))
	beside, err := w.client.CreateSubnet(t.Context(), &service.CreateSubnetInput{
		VpcId: w.subnets[0].VpcId, AvailabilityZone: w.subnets[0].AvailabilityZone, CidrBlock: sdk.String("172.31.240.0/24"),
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "two subnets of a zone", "InvalidFleetConfig", call(func(in *service.CreateFleetInput) {
		for _, subnet := range []*string{w.subnets[0].SubnetId, beside.Subnet.SubnetId} {
			in.LaunchTemplateConfigs[0].Overrides = append(in.LaunchTemplateConfigs[0].Overrides, types.FleetLaunchTemplateOverridesRequest{
				SubnetId: subnet, InstanceType: "c6i.large",
			})
		}
	}))
}

// fail refuses an operation with a code.
func (w world) fail(operation, code string) {
	w.proxy.Handle("ec2", operation, func(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		awstest.Fail(rw, r, http.StatusBadRequest, code, "")
	})
}

// clock is a time that a test sets.
type clock struct{ seconds atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(1_800_000_000+c.seconds.Load(), 0) }

func TestWhatWasShortIsLeftOutOfTheNextOrders(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	types := []string{"c6i.large", "m6i.large"}
	if catalogue.LocalArch() == catalogue.ArchArm {
		types = []string{"c6g.large", "m6g.large"}
	}
	var now clock
	w := newWorld(t)
	options := w.options()
	options.Now = now.now
	c := w.ready(t, options)
	w.SetLimits(ec2gap.Limit{Types: types[0], Zone: "us-east-1a", Most: 0})
	o := order(t, c, 1, 2)
	o.InstanceTypes = types
	for _, m := range launch(t, c, o) {
		equal(t, "zone while one is short", "us-east-1b", m.Zone)
	}
	want := []lifecycle.Offering{{InstanceType: types[0], Place: "us-east-1a"}}
	equal(t, "exhausted", want, c.Exhausted(lifecycle.UsageOnDemand))
	equal(t, "exhausted of spot", []lifecycle.Offering(nil), c.Exhausted(lifecycle.UsageSpot))

	w.SetLimits()
	o = order(t, c, 2, 2)
	o.InstanceTypes, o.Exclude = types, c.Exhausted(lifecycle.UsageOnDemand)
	for _, m := range launch(t, c, o) {
		equal(t, "place without it", types[0]+" us-east-1b", m.InstanceType+" "+m.Zone)
	}
	now.seconds.Add(int64(3 * time.Minute / time.Second))
	equal(t, "exhausted 3 minutes later", []lifecycle.Offering(nil), c.Exhausted(lifecycle.UsageOnDemand))
}

func TestAFullSubnetIsLeftOut(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	w.SetLimits(ec2gap.Limit{Zone: "us-east-1a", Most: 0, Code: "InsufficientFreeAddressesInSubnet"}, ec2gap.Limit{Most: 1})
	why := short(t, c, order(t, c, 1, 2), 1).Reason
	full := *w.subnets[0].SubnetId
	want := "no free address in subnet " + full + " in us-east-1a (InsufficientFreeAddressesInSubnet): add a subnet to pool default"
	if !strings.Contains(why, want) {
		t.Errorf("%q does not say %q", why, want)
	}
	if out := c.Exhausted(lifecycle.UsageOnDemand); !slices.Contains(out, lifecycle.Offering{Place: full}) {
		t.Errorf("%v does not have %s", out, full)
	}
}

func TestTemplateIsAskedForOnceAMinute(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	var now clock
	w := newWorld(t)
	w.ready(t, w.options())
	options := w.options()
	options.Now = now.now
	c := w.open(t, options)
	ask := func(want string, calls int) {
		t.Helper()
		version, err := c.Template(t.Context(), "default")
		if err != nil || version != want || w.calls("DescribeLaunchTemplates") != calls {
			t.Errorf("got %q, %v after %d calls, want %q after %d", version, err, w.calls("DescribeLaunchTemplates"), want, calls)
		}
	}
	ask("1", 1)
	w.ready(t, pool(w.options(), func(p *ec2.Pool) { p.RootVolumeGiB = 20 }))
	now.seconds.Add(59)
	ask("1", 1)
	now.seconds.Add(1)
	ask("2", 2)
	w.ready(t, w.options())
	// A version that was deleted in the meantime is asked for again.
	o := order(t, c, 1, 1)
	o.TemplateVersion = "9"
	short(t, c, o, 0)
	ask("3", 3)
}

func TestAMissingTemplateIsRefused(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	_, err := w.open(t, w.options()).Template(t.Context(), "default")
	if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), "find launch template remuda-default") || !strings.Contains(err.Error(), "run Refresh") {
		t.Errorf("got %v", err)
	}
	if _, err := w.open(t, w.options()).Template(t.Context(), "other"); !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), `"other" is not configured`) {
		t.Errorf("another pool: got %v", err)
	}
}
