package ec2_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// cloud is an EC2 without a network: it launches every order.
type cloud struct {
	ec2.API
	zones      map[string]string // of the subnets; nil: zones
	launches   []*service.CreateFleetInput
	client     service.HTTPClient   // that calls are made with
	clients    []service.HTTPClient // that launches are made with
	terminated []int                // in each call
	at         time.Time            // of the last call

	// forgetful answers to a repeat do not tell what the first call made.
	forgetful bool
	made      []types.Instance
}

// zones of the subnets, two of them in the first.
var zones = map[string]string{"subnet-a1": "a", "subnet-a2": "a", "subnet-b": "b", "subnet-c": "c"}

func (c *cloud) subnets() map[string]string {
	if c.zones != nil {
		return c.zones
	}
	return zones
}

func (c *cloud) DescribeSubnets(context.Context, *service.DescribeSubnetsInput, ...func(*service.Options)) (*service.DescribeSubnetsOutput, error) {
	out := &service.DescribeSubnetsOutput{}
	for subnet, zone := range c.subnets() {
		out.Subnets = append(out.Subnets, types.Subnet{SubnetId: sdk.String(subnet), AvailabilityZone: sdk.String(zone)})
	}
	return out, nil
}

func (c *cloud) CreateFleet(_ context.Context, in *service.CreateFleetInput, with ...func(*service.Options)) (*service.CreateFleetOutput, error) {
	options := service.Options{HTTPClient: c.client}
	for _, change := range with {
		change(&options)
	}
	c.clients = append(c.clients, options.HTTPClient)
	c.launches, c.at = append(c.launches, in), time.Now()
	requirements := 0
	for _, config := range in.LaunchTemplateConfigs {
		for _, override := range config.Overrides {
			if override.InstanceRequirements != nil {
				requirements++
			}
		}
	}
	if requirements > 4 {
		return nil, &smithy.GenericAPIError{
			Code: "InvalidParameterValue", Message: "Your request contains more than the maximum allowed number of InstanceRequirements (4)",
		}
	}
	var ids []string
	for i := range *in.TargetCapacitySpecification.TotalTargetCapacity {
		ids = append(ids, fmt.Sprintf("i-%08x%08x", len(c.launches), i))
	}
	if c.forgetful && len(c.launches) > 1 {
		return &service.CreateFleetOutput{}, nil
	}
	for _, id := range ids {
		c.made = append(c.made, types.Instance{InstanceId: sdk.String(id), InstanceType: "c6i.large", Tags: in.TagSpecifications[1].Tags})
	}
	return &service.CreateFleetOutput{Instances: []types.CreateFleetInstance{{InstanceIds: ids, InstanceType: "c6i.large"}}}, nil
}

func (c *cloud) DescribeInstances(context.Context, *service.DescribeInstancesInput, ...func(*service.Options)) (*service.DescribeInstancesOutput, error) {
	return &service.DescribeInstancesOutput{Reservations: []types.Reservation{{Instances: c.made}}}, nil
}

func (c *cloud) TerminateInstances(_ context.Context, in *service.TerminateInstancesInput, _ ...func(*service.Options)) (*service.TerminateInstancesOutput, error) {
	c.terminated, c.at = append(c.terminated, len(in.InstanceIds)), time.Now()
	return &service.TerminateInstancesOutput{}, nil
}

func open(t testing.TB, rates ec2.Rates) (*cloud, *ec2.Compute) {
	t.Helper()
	api := &cloud{}
	c, err := ec2.New(api, ec2.Options{Prefix: prefix, Region: region, Rates: rates, Pools: map[string]ec2.Pool{"default": {
		Images: map[string]string{"x86_64": "ami-1"}, Subnets: []string{"subnet-a1", "subnet-a2", "subnet-b", "subnet-c"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return api, c
}

// legal holds what was launched against EC2's model, as everything is that other tests send to the emulators.
func (c *cloud) legal(t testing.TB) {
	t.Helper()
	client := service.NewFromConfig(awstest.Unanswered(t))
	for _, in := range c.launches {
		if _, err := client.CreateFleet(t.Context(), in); err != nil {
			t.Error(err)
		}
	}
}

// unpaced are rates that no test reaches.
var unpaced = ec2.Rates{
	Launches: ec2.Rate{PerSecond: 1e6, Burst: 1e6}, Launched: ec2.Rate{PerSecond: 1e6, Burst: 1e6}, Reads: ec2.Rate{PerSecond: 1e6, Burst: 1e6},
}

func plain(number, count int) lifecycle.LaunchOrder {
	return lifecycle.LaunchOrder{
		Token: fmt.Sprint(number), RequestID: "q", Number: number, Count: count, Pool: "default", TemplateVersion: "1",
		ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand,
	}
}

// call is what an order becomes: the subnets, and the types that are allowed in each.
func call(t testing.TB, o lifecycle.LaunchOrder) (in *service.CreateFleetInput, allowed map[string]string) {
	t.Helper()
	api, c := open(t, ec2.Rates{})
	if _, err := c.Launch(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	api.legal(t)
	allowed = map[string]string{}
	for _, override := range api.launches[0].LaunchTemplateConfigs[0].Overrides {
		allowed[*override.SubnetId] = strings.Join(override.InstanceRequirements.AllowedInstanceTypes, " ")
	}
	return api.launches[0], allowed
}

func TestTypesAreThoseOfRequestAndPool(t *testing.T) {
	racepass.OneGoroutine(t)
	tests := map[string]struct{ request, pool, want string }{
		"any":                 {"", "", ""},
		"any, said":           {"*", "", ""},
		"the request's":       {"c* m*", "", "c* m*"},
		"the pool's":          {"", "c6i.*", "c6i.*"},
		"any that pool has":   {"*", "c6i.*", "c6i.*"},
		"one in the other":    {"c*", "c6i.* m6i.*", "c6i.*"},
		"the same":            {"c* m* r*", "c* m* r*", "c* m* r*"},
		"across":              {"c*", "*.large *.xlarge", "c*.large c*.xlarge"},
		"in the middle":       {"c*.large", "*6i*", "c*6i*.large"},
		"stars meet":          {"*6*", "*i*", "*6*i* *i*6*"},
		"names":               {"c6i.large m6i.large", "m*", "m6i.large"},
		"twice":               {"c* c6i.* c6i.large", "", "c*"},
		"long":                {"c" + strings.Repeat("*", 40), "*", "c*"},
		"patterns too long":   {"*c*6*i*.*l*a*r*g*e*", "*c*6*i*.*l*a*r*g*e*", "*c*6*i*.*l*a*r*g*e*"},
		"more than EC2 takes": {"*c*6*i*.*", "*l*a*r*g*e*", "c6i.large c6i.xlarge"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := plain(1, 1)
			o.InstanceTypes, o.PoolTypes = strings.Fields(test.request), strings.Fields(test.pool)
			_, allowed := call(t, o)
			equal(t, "allowed", test.want, allowed["subnet-b"])
		})
	}
}

// Whatever the patterns are, a type of the right size is allowed if and only if
// both lists allow it.
func TestAllowedTypesAreTheIntersection(t *testing.T) {
	racepass.OneGoroutine(t)
	r := rand.New(rand.NewSource(1))
	pattern := func() string {
		parts := []string{"*", "c", "m", "6", "7", "i", "g", ".", "large", "xl", "*"}
		p := ""
		for range 1 + r.Intn(6) {
			p += parts[r.Intn(len(parts))]
		}
		return p
	}
	match := func(patterns []string, name string) bool {
		for _, p := range patterns {
			if catalogue.Match(p, name) {
				return true
			}
		}
		return len(patterns) == 0
	}
	api, c := open(t, unpaced)
	for i := range 500 {
		o := plain(i, 1)
		o.InstanceTypes, o.PoolTypes = []string{pattern(), pattern()}, []string{pattern(), pattern()}
		api.launches = nil
		_, err := c.Launch(t.Context(), o)
		var short *lifecycle.ShortageError
		if err != nil && !errors.As(err, &short) {
			t.Fatal(err)
		}
		api.legal(t)
		for _, typ := range catalogue.All() {
			if typ.CPU < 2 || typ.CPU > 4 || typ.MemoryMiB < 4096 || typ.MemoryMiB > 16384 {
				continue
			}
			want := match(o.InstanceTypes, typ.Name) && match(o.PoolTypes, typ.Name)
			got := short == nil && match(api.launches[0].LaunchTemplateConfigs[0].Overrides[0].InstanceRequirements.AllowedInstanceTypes, typ.Name)
			if got != want {
				t.Fatalf("%s of %v and %v: allowed is %t, want %t", typ.Name, o.InstanceTypes, o.PoolTypes, got, want)
			}
		}
	}
}

func TestWhatAnOrderLeavesOut(t *testing.T) {
	racepass.OneGoroutine(t)
	all := []string{"c6i.large", "m*"}
	tests := map[string]struct {
		types   []string
		without []lifecycle.Offering
		want    map[string]string // except for the two subnets of zone a: the token takes one of them
	}{
		"nothing":         {all, nil, map[string]string{"a": "c6i.large m*", "b": "c6i.large m*", "c": "c6i.large m*"}},
		"a name":          {all, []lifecycle.Offering{{InstanceType: "c6i.large", Place: "b"}}, map[string]string{"a": "c6i.large m*", "b": "m*", "c": "c6i.large m*"}},
		"another type":    {all, []lifecycle.Offering{{InstanceType: "r6i.large", Place: "b"}}, map[string]string{"a": "c6i.large m*", "b": "c6i.large m*", "c": "c6i.large m*"}},
		"one of a family": {[]string{"c6i.*"}, []lifecycle.Offering{{InstanceType: "c6i.large", Place: "b"}}, map[string]string{"a": "c6i.*", "b": "c6i.xlarge", "c": "c6i.*"}},
		"all of a zone":   {[]string{"c6i.large"}, []lifecycle.Offering{{InstanceType: "c6i.large", Place: "b"}}, map[string]string{"a": "c6i.large", "c": "c6i.large"}},
		"everything": {[]string{"c6i.large"}, []lifecycle.Offering{
			{InstanceType: "c6i.large", Place: "a"}, {InstanceType: "c6i.large", Place: "b"}, {InstanceType: "c6i.large", Place: "c"},
		}, map[string]string{"a": "c6i.large", "b": "c6i.large", "c": "c6i.large"}},
		"a full subnet":      {all, []lifecycle.Offering{{Place: "subnet-b"}}, map[string]string{"a": "c6i.large m*", "c": "c6i.large m*"}},
		"all subnets are":    {all, []lifecycle.Offering{{Place: "subnet-a1"}, {Place: "subnet-a2"}, {Place: "subnet-b"}, {Place: "subnet-c"}}, map[string]string{"a": "c6i.large m*", "b": "c6i.large m*", "c": "c6i.large m*"}},
		"a place of no more": {all, []lifecycle.Offering{{Place: "subnet-x"}, {InstanceType: "c6i.large", Place: "x"}}, map[string]string{"a": "c6i.large m*", "b": "c6i.large m*", "c": "c6i.large m*"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := plain(1, 1)
			o.InstanceTypes, o.Exclude = test.types, test.without
			_, allowed := call(t, o)
			got := map[string]string{}
			for subnet, types := range allowed {
				got[zones[subnet]] = types
			}
			equal(t, "allowed by zone", test.want, got)
		})
	}
}

func TestAnyTypeButOne(t *testing.T) {
	racepass.OneGoroutine(t)
	o := plain(1, 1)
	o.Exclude = []lifecycle.Offering{{InstanceType: "c6i.large", Place: "b"}}
	_, allowed := call(t, o)
	if b := strings.Fields(allowed["subnet-b"]); allowed["subnet-c"] != "" || len(b) < 20 || strings.Contains(allowed["subnet-b"], "c6i.large") {
		t.Errorf("got %q", allowed)
	}
}

func TestTwoSubnetsOfAZoneShareTheLoad(t *testing.T) {
	racepass.OneGoroutine(t)
	used := map[string]int{}
	for number := range 40 {
		_, allowed := call(t, plain(number, 1))
		if len(allowed) != 3 {
			t.Fatalf("subnets %v, want one of each of 3 zones", allowed)
		}
		for subnet := range allowed {
			used[subnet]++
		}
	}
	if used["subnet-a1"]+used["subnet-a2"] != 40 || used["subnet-a1"] < 8 || used["subnet-a2"] < 8 {
		t.Errorf("used %v", used)
	}
	o := plain(1, 1)
	o.Exclude = []lifecycle.Offering{{Place: "subnet-a1"}}
	if _, allowed := call(t, o); len(allowed) != 3 || allowed["subnet-a1"] != "" {
		t.Errorf("with one full: %v", allowed)
	}
}

// EC2 takes four InstanceRequirements in a call, and one goes with each zone of each launch template. So a launch is for
// some of the zones, over the launches for all, and for those that are not short first.
func TestZonesOfALaunch(t *testing.T) {
	racepass.OneGoroutine(t)
	for _, test := range []struct {
		zones, architectures, want int
	}{{1, 1, 1}, {3, 1, 3}, {4, 1, 4}, {6, 1, 4}, {1, 2, 1}, {2, 2, 2}, {3, 2, 2}, {6, 2, 2}} {
		t.Run(fmt.Sprintf("%d zones, %d architectures", test.zones, test.architectures), func(t *testing.T) {
			p := ec2.Pool{Images: map[string]string{"x86_64": "ami-1"}}
			version := "1"
			if test.architectures == 2 {
				p.Images["arm64"], version = "ami-2", "1/1"
			}
			api := &cloud{zones: map[string]string{}}
			for i := range test.zones {
				subnet := fmt.Sprintf("subnet-%d", i)
				p.Subnets, api.zones[subnet] = append(p.Subnets, subnet), string(rune('a'+i))
			}
			c, err := ec2.New(api, ec2.Options{Prefix: prefix, Region: region, Pools: map[string]ec2.Pool{"default": p}, Rates: unpaced})
			if err != nil {
				t.Fatal(err)
			}
			launch := func(number int, exclude ...lifecycle.Offering) (subnets []string) {
				o := plain(number, 1)
				o.TemplateVersion, o.Exclude = version, exclude
				if _, err := c.Launch(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				for _, override := range api.launches[len(api.launches)-1].LaunchTemplateConfigs[0].Overrides {
					subnets = append(subnets, *override.SubnetId)
				}
				return subnets
			}
			used := map[string]int{}
			for number := range 60 {
				subnets := launch(number)
				equal(t, "zones", test.want, len(subnets))
				for _, s := range subnets {
					used[s]++
				}
			}
			for _, s := range p.Subnets {
				if even := 60 * test.want / test.zones; used[s] < even/2 || used[s] > 2*even {
					t.Errorf("%s is in %d of 60 launches, want about %d", s, used[s], even)
				}
			}
			var visited []string
			for n := range (test.zones + test.want - 1) / test.want {
				visited = append(visited, launch(61+n)...)
			}
			slices.Sort(visited)
			equal(t, "zones of launches that follow each other", p.Subnets, slices.Compact(visited))
			var short []lifecycle.Offering
			for _, s := range p.Subnets[:test.zones-1] {
				short = append(short, lifecycle.Offering{Place: s})
			}
			equal(t, "zones while the others are short", p.Subnets[test.zones-1:], launch(60, short...))
			api.legal(t)
		})
	}
}

// EC2 answers a launch once it has placed all machines, which may take longer than any other call.
func TestALaunchMayTakeAMinute(t *testing.T) {
	racepass.OneGoroutine(t)
	api, c := open(t, unpaced)
	ordinary := awshttp.NewBuildableClient().WithTimeout(15 * time.Second)
	api.client = ordinary
	for number := range 2 {
		if _, err := c.Launch(t.Context(), plain(number, 1)); err != nil {
			t.Fatal(err)
		}
	}
	patient, ok := api.clients[0].(*awshttp.BuildableClient)
	if !ok || patient.GetTimeout() != time.Minute || ordinary.GetTimeout() != 15*time.Second {
		t.Errorf("launches are made with %T", api.clients[0])
	}
	if api.clients[1] != api.clients[0] {
		t.Error("the second launch opens connections of its own")
	}
}

func TestTheSameOrderIsTheSameCall(t *testing.T) {
	racepass.OneGoroutine(t)
	o := plain(7, 3)
	o.InstanceTypes, o.PoolTypes = []string{"c*", "m*"}, []string{"*.large", "*6i*"}
	o.Exclude = []lifecycle.Offering{{InstanceType: "c6i.large", Place: "b"}}
	first, _ := call(t, o)
	for range 10 {
		again, _ := call(t, o)
		if !reflect.DeepEqual(first, again) {
			t.Fatal("the same order became another call")
		}
	}
	equal(t, "token", "remuda-7", *first.ClientToken)
	equal(t, "version", "1", *first.LaunchTemplateConfigs[0].LaunchTemplateSpecification.Version)
	r := first.LaunchTemplateConfigs[0].Overrides[0].InstanceRequirements
	equal(t, "size", []int32{2, 4, 4096, 16384}, []int32{*r.VCpuCount.Min, *r.VCpuCount.Max, *r.MemoryMiB.Min, *r.MemoryMiB.Max})
	equal(t, "strategy", types.FleetOnDemandAllocationStrategyLowestPrice, first.OnDemandOptions.AllocationStrategy)
	o.UsageClass = lifecycle.UsageSpot
	spot, _ := call(t, o)
	equal(t, "strategy of spot", types.SpotAllocationStrategyPriceCapacityOptimized, spot.SpotOptions.AllocationStrategy)
}

func TestARepeatThatTellsOfNothingIsLookedInto(t *testing.T) {
	racepass.OneGoroutine(t)
	api, c := open(t, ec2.Rates{})
	api.forgetful = true
	first := launch(t, c, plain(1, 3))
	again := launch(t, c, plain(1, 3))
	equal(t, "machines", ids(first), ids(again))
	// But only machines of this very order are of it.
	o := plain(1, 3)
	o.MemoryMiB++
	short(t, c, o, 0)
}

// EC2 lets an account launch 1,000 machines at once and 2 a second after that;
// half of the bucket is ours.
func TestBurstsArePaced(t *testing.T) {
	racepass.OneGoroutine(t)
	synctest.Test(t, func(t *testing.T) {
		api, c := open(t, ec2.Rates{})
		began := time.Now()
		launched := func(number, count int) time.Duration {
			t.Helper()
			if _, err := c.Launch(t.Context(), plain(number, count)); err != nil {
				t.Fatal(err)
			}
			return api.at.Sub(began).Round(time.Second)
		}
		equal(t, "200", 0*time.Second, launched(1, 200))
		equal(t, "400", 0*time.Second, launched(2, 200))
		equal(t, "600, of which 100 wait", 50*time.Second, launched(3, 200))
		equal(t, "fewer calls than machines", 3, len(api.launches))

		ids := make([]string, 600)
		for i := range ids {
			ids[i] = fmt.Sprintf("i-%08x", i)
		}
		began = time.Now()
		if err := c.Terminate(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		equal(t, "batches", []int{100, 100, 100, 100, 100, 100}, api.terminated)
		equal(t, "600 ended, of which 100 wait", 5*time.Second, api.at.Sub(began).Round(time.Second))
	})
}

func TestWhoCannotWaitIsToldAtOnce(t *testing.T) {
	racepass.OneGoroutine(t)
	synctest.Test(t, func(t *testing.T) {
		api, c := open(t, ec2.Rates{Launched: ec2.Rate{PerSecond: 1, Burst: 10}})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 21*time.Second)
		defer cancel()
		_, err := c.Launch(ctx, plain(1, 60))
		if !errors.Is(err, lifecycle.ErrUnavailable) || len(api.launches) > 0 {
			t.Errorf("got %v after %d calls, want ErrUnavailable after none", err, len(api.launches))
		}
		var unavailable *lifecycle.UnavailableError
		if errors.As(err, &unavailable) && unavailable.RetryAfter.Round(time.Second) != 50*time.Second {
			t.Errorf("retry after %s, want 50 s", unavailable.RetryAfter)
		}
		equal(t, "time that it took", 0*time.Second, time.Since(began))
		// It took nothing from those who can wait, or want less.
		if _, err := c.Launch(ctx, plain(2, 30)); err != nil {
			t.Error(err)
		}
		equal(t, "time for 30", 20*time.Second, api.at.Sub(began).Round(time.Second))
	})
}

func TestEveryCallHasItsAction(t *testing.T) {
	racepass.OneGoroutine(t)
	named := map[string]bool{}
	for _, p := range ec2.Actions() {
		named[p.Action] = true
		if p.Why == "" || p.On == "" || p.Role == "" {
			t.Errorf("%s: not all is said: %+v", p.Action, p)
		}
	}
	api := reflect.TypeFor[ec2.API]()
	for i := range api.NumMethod() {
		if action := "ec2:" + api.Method(i).Name; !named[action] {
			t.Errorf("%s is called and is in no policy", action)
		}
		delete(named, "ec2:"+api.Method(i).Name)
	}
	for _, key := range []string{"CreateGrant", "Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo"} {
		equal(t, "kms:"+key, true, named["kms:"+key])
		delete(named, "kms:"+key)
	}
	// RunInstances is both: EC2 does it for a fleet, and the rehearsal of a launch calls it.
	equal(t, "done by EC2 in the caller's name", map[string]bool{"ec2:CreateTags": true, "iam:PassRole": true}, named)
}
