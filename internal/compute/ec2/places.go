package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

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
	sum := sha256.Sum256([]byte(o.Token))
	lot := binary.BigEndian.Uint64(sum[:])
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
			picked = append(picked, candidates[lot%uint64(len(candidates))])
		}
	}
	return picked
}
