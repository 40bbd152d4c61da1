package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// Codes with a meaning of their own for a launch.
const (
	codeOtherParameters = "IdempotentParameterMismatch"
	codeNoVersion       = "InvalidLaunchTemplateId.VersionNotFound"
	codeSubnetFull      = "InsufficientFreeAddressesInSubnet"
	codeNoSpotRole      = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
)

// quotas are the codes that say that the account may have no more, by what of.
var quotas = map[string]string{
	"VcpuLimitExceeded":                "vCPU of this kind of instance",
	"InstanceLimitExceeded":            "instances",
	"MaxSpotInstanceCountExceeded":     "vCPU of spot instances",
	"MaxSpotFleetRequestCountExceeded": "spot requests",
	"VolumeLimitExceeded":              "volumes",
	"MaxIOPSLimitExceeded":             "IOPS of volumes",
	"MaxFleetCountExceeded":            "fleets",
}

func shortage(o lifecycle.LaunchOrder, got int, why string) error {
	return &lifecycle.ShortageError{Ordered: o.Count, Got: got, Reason: why}
}

// failure is what EC2 says about one offering of a launch.
type failure struct {
	code, message string
	types         []string // that were asked for there
	subnet, zone  string
}

// class is what the failure means for the offering.
func (f failure) class() aws.Class {
	if isNoPools(f.code, f.message) {
		return aws.Capacity
	}
	return aws.OfFleetCode(f.code)
}

func failureOf(e types.CreateFleetError, o lifecycle.LaunchOrder, places []place) failure {
	f := failure{code: sdk.ToString(e.ErrorCode), message: aws.Reason(sdk.ToString(e.ErrorMessage))}
	used := e.LaunchTemplateAndOverrides
	f.zone = zoneOf(places, "", "", used)
	if used != nil && used.Overrides != nil {
		f.subnet = sdk.ToString(used.Overrides.SubnetId)
		if t := used.Overrides.InstanceType; t != "" {
			f.types = []string{string(t)}
		}
	}
	return f
}

// cameShort is why an answer has fewer machines than were ordered; nil if it
// has them all, whatever else it says: EC2 went on to another offering then.
func (c *Compute) cameShort(what string, o lifecycle.LaunchOrder, places []place, got int, errs []types.CreateFleetError) error {
	if got >= o.Count {
		return nil
	}
	var failures []failure
	refused := len(errs) > 0
	for _, e := range errs {
		f := failureOf(e, o, places)
		failures = append(failures, f)
		switch f.class() {
		case aws.Denied, aws.Expired, aws.Gone, aws.Terminal:
			if f.code == codeNoVersion {
				c.forgetTemplate(o.Pool)
				refused = false
			}
		default:
			refused = false
		}
	}
	why := sentences(o, failures)
	if refused && got == 0 {
		return fmt.Errorf("%s: %w: %s", what, lifecycle.ErrRefused, why)
	}
	return shortage(o, got, why)
}

// sentences say it once for each code.
func sentences(o lifecycle.LaunchOrder, failures []failure) string {
	if len(failures) == 0 {
		return "EC2 gave fewer and did not say why"
	}
	byCode := map[string][]failure{}
	for _, f := range failures {
		byCode[f.code] = append(byCode[f.code], f)
	}
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(byCode)) {
		parts = append(parts, sentence(o, byCode[code]...))
	}
	return strings.Join(parts, "; ")
}

// namedTypes is how many types a sentence names before it only counts them.
const namedTypes = 6

// sentence is about failures of one code.
func sentence(o lifecycle.LaunchOrder, failures ...failure) string {
	var names, zones, subnets []string
	for _, f := range failures {
		names, zones, subnets = append(names, f.types...), append(zones, f.zone), append(subnets, f.subnet)
	}
	names, zones, subnets = distinct(names), distinct(zones), distinct(subnets)
	in := ""
	if len(zones) > 0 {
		in = " in " + strings.Join(zones, ", ")
	}
	f := failures[0]
	switch quota, isQuota := quotas[f.code]; {
	case isQuota:
		return fmt.Sprintf("the account's quota of %s is used up (%s): end what is not needed, or raise it in Service Quotas", quota, f.code)
	case f.code == codeSubnetFull:
		return fmt.Sprintf("no free address in subnet %s%s (%s): add a subnet to pool %s", strings.Join(subnets, ", "), in, f.code, o.Pool)
	case isNoPools(f.code, f.message):
		return noPools(o, names, zones)
	case f.class() == aws.Capacity:
		text := fmt.Sprintf("no %s capacity of %s%s (%s)", o.UsageClass, named(o, names), in, f.code)
		return withRemedy(text, f.code, o.Pool)
	}
	text := f.code
	if f.message != "" {
		text += ": " + f.message
	}
	return withRemedy(text, f.code, o.Pool)
}

func withRemedy(text, code, pool string) string {
	if help := remedy(code, pool); help != "" {
		text += "; " + help
	}
	return text
}

// named are types, or when EC2 names none the patterns that were allowed.
func named(o lifecycle.LaunchOrder, names []string) string {
	if len(names) == 0 {
		patterns, _ := allowedTypes(o)
		if len(patterns) == 0 {
			patterns = []string{"*"}
		}
		return fmt.Sprintf("%s with %d vCPU and %d MiB", strings.Join(patterns, ", "), o.CPU, o.MemoryMiB)
	}
	text := strings.Join(names[:min(namedTypes, len(names))], ", ")
	if more := len(names) - namedTypes; more > 0 {
		text += " and " + plural.Of(more, "more type", "more types")
	}
	return text
}

// distinct drops what is empty or was there before.
func distinct(list []string) []string {
	var kept []string
	for _, s := range list {
		if s != "" && !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// remedy says what an operator can do about a code that lasts until then.
func remedy(code, pool string) string {
	switch {
	case strings.HasPrefix(code, "InvalidAMIID"):
		return "build a new image, or correct the images of pool " + pool + ", and run Refresh"
	case strings.HasPrefix(code, "InvalidSubnet"):
		return "correct the subnets of pool " + pool
	case strings.HasPrefix(code, "InvalidGroup"), strings.HasPrefix(code, "InvalidSecurityGroup"):
		return "correct the security groups of pool " + pool + " and run Refresh"
	case strings.HasPrefix(code, "InvalidLaunchTemplateName"), strings.HasPrefix(code, "InvalidLaunchTemplateId"):
		return "run Refresh, which creates the launch template"
	case code == codeNoSpotRole:
		return "create the role once, with aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
	case code == "UnauthorizedOperation":
		return "allow ec2:CreateFleet, ec2:RunInstances, ec2:CreateTags and iam:PassRole (docs/iam)"
	case code == "InvalidFleetConfig":
		// Of a call: its offerings are not different ones (aws-samples/aws-plugin-for-slurm#19). Of one offering it is a shortage.
		return "correct the subnets of pool " + pool + ": two of them give the same instance pool"
	case code == "InvalidParameterValue", code == "InvalidIamInstanceProfile", code == "InvalidParameterCombination":
		return "if it is the instance profile, create it or correct its name; `controld config check --aws` looks at the rest"
	}
	return ""
}

const (
	// shortFor is how long an offering that was out of capacity is left out of
	// new orders. Shorter, and a request that looks again every 10 s meets the
	// same shortage each time; longer, and machines that came back are not used.
	shortFor = 3 * time.Minute
	// maxShort bounds what an order carries, since it is stored.
	maxShort = 100
)

// rememberShort notes what an answer says was short. A quota is no matter of the
// offering, and what names no type may be short of anything.
func (c *Compute) rememberShort(o lifecycle.LaunchOrder, places []place, errs []types.CreateFleetError) {
	until := c.now().Add(shortFor)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range errs {
		f := failureOf(e, o, places)
		_, quota := quotas[f.code]
		switch {
		case quota || f.class() != aws.Capacity:
		case f.code == codeSubnetFull && f.subnet != "":
			c.short[offering{o.UsageClass, lifecycle.Offering{Place: f.subnet}}] = until
		case len(f.types) == 1 && f.zone != "":
			c.short[offering{o.UsageClass, lifecycle.Offering{InstanceType: f.types[0], Place: f.zone}}] = until
		}
	}
}

// Exhausted are the offerings of a usage class that this process found out of capacity within the last
// minutes. An order is given them (Without) before it is stored, so that it is the same whenever it is made.
func (c *Compute) Exhausted(usage lifecycle.UsageClass) []lifecycle.Offering {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []lifecycle.Offering
	for o, until := range c.short {
		switch {
		case !now.Before(until):
			delete(c.short, o)
		case o.usage == usage:
			list = append(list, o.Offering)
		}
	}
	slices.SortFunc(list, func(a, b lifecycle.Offering) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.InstanceType, b.InstanceType))
	})
	return list[:min(len(list), maxShort)]
}
