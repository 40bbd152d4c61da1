package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// quotaCheck is a quota beside what the pools need when they are full.
type quotaCheck struct {
	Result string `json:"result"`
	Code   string `json:"code"`
	VCPU   int    `json:"vcpu"`
	Needed int    `json:"needed"`
	Detail string `json:"detail,omitempty"`
}

// quotaOf returns a function that reads quotas of EC2.
func quotaOf(cfg sdk.Config) func(context.Context, string) (float64, error) {
	client := servicequotas.NewFromConfig(cfg)
	return func(ctx context.Context, code string) (float64, error) {
		out, err := client.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: sdk.String("ec2"), QuotaCode: &code})
		if err != nil {
			return 0, aws.Wrap("read quota "+code, err)
		}
		return sdk.ToFloat64(out.Quota.Value), nil
	}
}

// vcpuQuota is one of EC2's quotas of vCPU.
type vcpuQuota struct {
	usage lifecycle.UsageClass
	code  string // in Service Quotas
	name  string
	// families are the types that count against it, or patterns of them.
	families *regexp.Regexp
}

// standard are the families of the quotas whose names list A, C, D, H, I, M, R, T and Z, and patterns that begin with a star, since
// these launch nothing with accelerators.
var standard = regexp.MustCompile(`^([acdhimrtz][0-9*]|im|is|\*)`)

// vcpuQuotas are the quotas whose families a pool may name. New accounts have 0 of most but those of the standard families. Those of metal
// machines, HPC and High Memory types are left out.
var vcpuQuotas = []vcpuQuota{
	{lifecycle.UsageOnDemand, "L-1216C47A", "Running On-Demand Standard instances", standard},
	{lifecycle.UsageOnDemand, "L-6E869C2A", "Running On-Demand DL instances", regexp.MustCompile(`^dl`)},
	{lifecycle.UsageOnDemand, "L-74FC7D96", "Running On-Demand F instances", regexp.MustCompile(`^f`)},
	{lifecycle.UsageOnDemand, "L-DB2E81BA", "Running On-Demand G and VT instances", regexp.MustCompile(`^(g|vt)`)},
	{lifecycle.UsageOnDemand, "L-1945791B", "Running On-Demand Inf instances", regexp.MustCompile(`^inf`)},
	{lifecycle.UsageOnDemand, "L-417A185B", "Running On-Demand P instances", regexp.MustCompile(`^p`)},
	{lifecycle.UsageOnDemand, "L-2C3B7624", "Running On-Demand Trn instances", regexp.MustCompile(`^trn`)},
	{lifecycle.UsageOnDemand, "L-7295265B", "Running On-Demand X instances", regexp.MustCompile(`^x`)},
	{lifecycle.UsageSpot, "L-34B43A08", "All Standard Spot Instance Requests", standard},
	{lifecycle.UsageSpot, "L-85EED4F7", "All DL Spot Instance Requests", regexp.MustCompile(`^dl`)},
	{lifecycle.UsageSpot, "L-88CF9481", "All F Spot Instance Requests", regexp.MustCompile(`^f`)},
	{lifecycle.UsageSpot, "L-3819A6DF", "All G and VT Spot Instance Requests", regexp.MustCompile(`^(g|vt)`)},
	{lifecycle.UsageSpot, "L-B5D1601B", "All Inf Spot Instance Requests", regexp.MustCompile(`^inf`)},
	{lifecycle.UsageSpot, "L-C4BD4855", "All P5 Spot Instance Requests", regexp.MustCompile(`^p[5*]`)},
	{lifecycle.UsageSpot, "L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests", regexp.MustCompile(`^p[^5]`)},
	{lifecycle.UsageSpot, "L-6B0D517C", "All Trn Spot Instance Requests", regexp.MustCompile(`^trn`)},
	{lifecycle.UsageSpot, "L-E3A00192", "All X Spot Instance Requests", regexp.MustCompile(`^x`)},
}

// checkQuotas reads the quotas that the pools need.
func checkQuotas(ctx context.Context, c *config.Config, probe *accountProbe) []quotaCheck {
	checks := []quotaCheck{}
	for _, q := range vcpuQuotas {
		needed, parts := q.needed(c)
		if len(parts) == 0 {
			continue
		}
		check := quotaCheck{Result: resultEnough, Code: q.code, Needed: needed, Detail: q.name + "; needed: " + strings.Join(parts, ", ")}
		value, err := probe.quota(ctx, q.code)
		check.VCPU = int(value)
		switch {
		case err != nil:
			check.Result, check.Detail = resultUnknown, fmt.Sprintf("%s: %v", check.Detail, err)
		case check.VCPU < needed:
			check.Result, check.Detail = resultSmall, check.Detail+"; ask Service Quotas for more, or write a smaller maximum"
		}
		checks = append(checks, check)
	}
	return checks
}

// counts reports whether hosts of a pool may count against the quota.
func (q vcpuQuota) counts(c *config.Config, pool string) bool {
	patterns := c.Pools[pool].InstanceTypes
	if len(patterns) == 0 {
		patterns = fleet.DefaultInstanceTypes
	}
	return slices.Contains(c.PoolUsageClasses(pool), q.usage) && slices.ContainsFunc(patterns, q.families.MatchString)
}

// needed is how many vCPU the hosts of the quota's pools have when each pool has its maximum of its largest class, and that pool by pool. A
// pool of several families needs as many of each. A host may have more vCPU than its class, so this is the least.
func (q vcpuQuota) needed(c *config.Config) (needed int, parts []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Pools)) {
		if !q.counts(c, name) {
			continue
		}
		largest := ""
		for _, class := range c.PoolResourceClasses(name) {
			if largest == "" || c.ResourceClasses[class].CPU > c.ResourceClasses[largest].CPU {
				largest = class
			}
		}
		hosts, cpu := c.Pools[name].Maximum, c.ResourceClasses[largest].CPU
		if hosts == nil {
			parts = append(parts, fmt.Sprintf("pool %s has no maximum, each %s takes %d", name, largest, cpu))
			continue
		}
		needed += *hosts * cpu
		parts = append(parts, fmt.Sprintf("%d of pool %s (%d x %s)", *hosts*cpu, name, *hosts, largest))
	}
	return needed, parts
}
