package ec2

import (
	"cmp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

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
		case quota || aws.OfFleetCode(f.code) != aws.Capacity:
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
