package ec2

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A host may have this many times the vCPU and the memory that its class asks for: one size up, and the
// families with four times the memory of the leanest (c has 2 GiB for a vCPU, r has 8). Without bounds a
// shortage of small types would be answered with the largest there are.
const (
	cpuAtMost    = 2
	memoryAtMost = 4
)

// bounds are the most vCPU and MiB that a host of an order may have: those of its class, or what suits the least.
func bounds(o lifecycle.LaunchOrder) (cpu, memoryMiB int) {
	return cmp.Or(o.MaxCPU, cpuAtMost*o.CPU), cmp.Or(o.MaxMemoryMiB, memoryAtMost*o.MemoryMiB)
}

// dearest is how much more than the cheapest that fits a type may cost, in per
// cent. EC2's own default of 20 would leave out m and r beside c. The bounds of
// size come first: within them nothing ordinary is four times as dear.
const dearest = 300

// maxRequirements is how many InstanceRequirements a call may carry, one for each override of each launch template ("Specify
// attributes for instance type selection for EC2 Fleet", Considerations). EC2 refuses a call with more (osbuild/osbuild-composer#3946).
const maxRequirements = 4

// checkOrder says what is wrong with an order, before anything is called.
func (c *Compute) checkOrder(o lifecycle.LaunchOrder) error {
	for _, p := range slices.Concat(o.InstanceTypes, o.PoolTypes) {
		if err := catalogue.CheckPattern(p); err != nil {
			return err
		}
	}
	switch {
	case o.Token == "" || o.Count < 1:
		return fmt.Errorf("want a token and a count of at least 1, got token %q and count %d", o.Token, o.Count)
	case len(c.templatesOf(o.Pool)) == 0:
		return fmt.Errorf("%w: pool %q is not configured", lifecycle.ErrRefused, o.Pool)
	}
	return nil
}

// clientToken is the order's, in this fleet: another in the same account may serve the same run.
func (c *Compute) clientToken(o lifecycle.LaunchOrder) string { return c.o.Prefix + "-" + o.Token }

// request is the call that an order becomes. It is a function of the order, the
// configuration and the zones of the subnets: a token stands for one call.
func (c *Compute) request(o lifecycle.LaunchOrder, places []place) (*service.CreateFleetInput, error) {
	templates, err := c.templatesAt(o)
	if err != nil {
		return nil, err
	}
	overrides, err := c.overrides(c.bounded(o), places, maxRequirements/len(templates))
	if err != nil {
		return nil, err
	}
	in := &service.CreateFleetInput{
		Type: types.FleetTypeInstant, ClientToken: sdk.String(c.clientToken(o)),
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: sdk.Int32(int32(o.Count))},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeFleet, Tags: tagList(c.poolTags(o.Pool))},
			{ResourceType: types.ResourceTypeInstance, Tags: tagList(c.machineTags(o))},
			// The template tags these too. EC2 may ask the policy about the tags of the call alone.
			{ResourceType: types.ResourceTypeVolume, Tags: tagList(c.poolTags(o.Pool))},
			{ResourceType: types.ResourceTypeNetworkInterface, Tags: tagList(c.poolTags(o.Pool))},
		},
	}
	for i := range templates {
		in.LaunchTemplateConfigs = append(in.LaunchTemplateConfigs, types.FleetLaunchTemplateConfigRequest{
			LaunchTemplateSpecification: &templates[i], Overrides: overrides,
		})
	}
	if o.UsageClass == lifecycle.UsageSpot {
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
		in.SpotOptions = &types.SpotOptionsRequest{
			AllocationStrategy:           types.SpotAllocationStrategyPriceCapacityOptimized,
			InstanceInterruptionBehavior: types.SpotInstanceInterruptionBehaviorTerminate,
		}
	} else {
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeOnDemand
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice}
	}
	return in, nil
}

// overrides are one subnet of each of at most so many zones, with the types that may be launched there. The request picks
// the zones, so the launches of a pool are spread over all of its zones, and each of its launches begins where the one before
// ended: what those zones do not have, others may. An order that leaves out everything is made as if it left out nothing.
func (c *Compute) overrides(o lifecycle.LaunchOrder, places []place, most int) ([]types.FleetLaunchTemplateOverridesRequest, error) {
	patterns, none := allowedTypes(o)
	if none {
		return nil, shortage(o, 0, fmt.Sprintf("no type that the request allows (%s) is one that pool %s allows (%s)",
			strings.Join(o.InstanceTypes, ", "), o.Pool, strings.Join(o.PoolTypes, ", ")))
	}
	var list []types.FleetLaunchTemplateOverridesRequest
	for _, p := range onePerZone(places, o) {
		allowed, any := allowedIn(p.zone, patterns, o)
		if !any {
			continue
		}
		list = append(list, types.FleetLaunchTemplateOverridesRequest{
			SubnetId: sdk.String(p.subnet), InstanceRequirements: c.requirements(o, allowed),
		})
	}
	if len(list) == 0 && len(o.Exclude) > 0 {
		o.Exclude = nil
		return c.overrides(o, places, most)
	}
	if len(list) > most {
		first := int((lot(o.RequestID) + uint64(o.Number)*uint64(most)) % uint64(len(list)))
		list = slices.Concat(list[first:], list[:first])[:most]
	}
	return list, nil
}

// accelerated are patterns that name families with GPUs, FPGAs or chips of AWS's own. A pool with one of them is launched on such types. What a
// request names has no such effect: it would have a caller choose machines that cost many times as much.
var accelerated = regexp.MustCompile(`^(dl|f|g|gr|inf|p|trn|vt)[0-9*]`)

// requirements of a class, with the patterns of the types that are allowed.
func (c *Compute) requirements(o lifecycle.LaunchOrder, allowed []string) *types.InstanceRequirementsRequest {
	r := &types.InstanceRequirementsRequest{
		VCpuCount:            &types.VCpuCountRangeRequest{Min: sdk.Int32(int32(o.CPU))},
		MemoryMiB:            &types.MemoryMiBRequest{Min: sdk.Int32(int32(o.MemoryMiB))},
		AllowedInstanceTypes: allowed,
		BurstablePerformance: types.BurstablePerformanceExcluded,
		BareMetal:            types.BareMetalExcluded,
		// Images of today do not boot on types of the oldest generations.
		InstanceGenerations: []types.InstanceGeneration{types.InstanceGenerationCurrent},
	}
	if most, _ := bounds(o); most > 0 {
		r.VCpuCount.Max = sdk.Int32(int32(most))
	}
	if _, most := bounds(o); most > 0 {
		r.MemoryMiB.Max = sdk.Int32(int32(most))
	}
	if c.o.Pools[o.Pool].HibernateMiB > 0 {
		r.RequireHibernateSupport, r.LocalStorage = sdk.Bool(true), types.LocalStorageExcluded
	}
	if !withAccelerators(o) {
		r.AcceleratorCount = &types.AcceleratorCountRequest{Max: sdk.Int32(0)}
	}
	if c.o.Pools[o.Pool].Burstable {
		r.BurstablePerformance = types.BurstablePerformanceIncluded
	}
	if family := c.o.Pools[o.Pool].CPUBaseline; family != "" {
		r.BaselinePerformanceFactors = &types.BaselinePerformanceFactorsRequest{
			Cpu: &types.CpuPerformanceFactorRequest{References: []types.PerformanceFactorReferenceRequest{{InstanceFamily: sdk.String(family)}}},
		}
	}
	if o.UsageClass == lifecycle.UsageSpot {
		r.SpotMaxPricePercentageOverLowestPrice = sdk.Int32(dearest)
	} else {
		r.OnDemandMaxPricePercentageOverLowestPrice = sdk.Int32(dearest)
	}
	return r
}

// place is a subnet and the zone it is in, which never changes.
type place struct{ subnet, zone string }

// placesOf the pool, in the order of its configuration, asked for once.
func (c *Compute) placesOf(ctx context.Context, pool string) ([]place, error) {
	c.mu.Lock()
	places := c.places[pool]
	c.mu.Unlock()
	if len(places) > 0 {
		return places, nil
	}
	places, err := c.askPlaces(ctx, pool)
	if err == nil && len(places) == 0 {
		err = fmt.Errorf("find the subnets of pool %s: %w: none of %s is in this account and region; correct the pool's subnets",
			pool, lifecycle.ErrRefused, strings.Join(c.o.Pools[pool].Subnets, ", "))
	}
	return places, err
}

func (c *Compute) askPlaces(ctx context.Context, pool string) ([]place, error) {
	what := "find the subnets of pool " + pool
	subnets := c.o.Pools[pool].Subnets
	// By a filter, since one unknown id would fail the call for all.
	in := &service.DescribeSubnetsInput{Filters: []types.Filter{filter("subnet-id", subnets...)}}
	out, err := paced(ctx, c.pace.reads, what, c.api.DescribeSubnets, in)
	if err != nil {
		return nil, err
	}
	var places []place
	for _, id := range subnets {
		i := slices.IndexFunc(out.Subnets, func(s types.Subnet) bool { return sdk.ToString(s.SubnetId) == id })
		if i >= 0 {
			places = append(places, place{id, sdk.ToString(out.Subnets[i].AvailabilityZone)})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places[pool] = places
	return places, nil
}

// onePerZone: a fleet cannot have two subnets of one zone ("EC2 Fleet limitations"). The token picks, so that
// a repeat is the same call and the load is spread; what the order leaves out is not picked.
func onePerZone(places []place, o lifecycle.LaunchOrder) []place {
	var picked []place
	var done []string
	for _, p := range places {
		if slices.Contains(done, p.zone) {
			continue
		}
		done = append(done, p.zone)
		var candidates []place
		for _, q := range places {
			if q.zone == p.zone && !slices.Contains(o.Exclude, lifecycle.Offering{Place: q.subnet}) {
				candidates = append(candidates, q)
			}
		}
		if len(candidates) > 0 {
			picked = append(picked, candidates[lot(o.Token)%uint64(len(candidates))])
		}
	}
	return picked
}

// lot is a number that is even over the names of orders or requests.
func lot(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:])
}
