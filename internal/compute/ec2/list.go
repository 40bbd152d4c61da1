package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// listingAge is how long a listing is kept for its next page. A caller that spends more
// time on one page gets the rest of a new listing.
const listingAge = time.Minute

// listing is every machine of the fleet at a time, by id.
type listing struct {
	machines []lifecycle.Machine
	at       time.Time
}

// List pages through the fleet's machines that are not gone, by id. The first page reads them all, since EC2
// lists in no order and pages by tokens that do not last; what follows is dealt from that, or if it is old
// from another. Impaired is not asked for: Describe does.
func (c *Compute) List(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	if err := ctx.Err(); err != nil {
		return lifecycle.Page[lifecycle.Machine]{}, fmt.Errorf("list machines: %w", err)
	}
	machines, ok := c.recentListing()
	if page.After == "" || !ok {
		var err error
		if machines, err = c.list(ctx); err != nil {
			return lifecycle.Page[lifecycle.Machine]{}, err
		}
	}
	at, _ := slices.BinarySearchFunc(machines, page.After, func(m lifecycle.Machine, after string) int {
		if m.InstanceID <= after {
			return -1
		}
		return 1
	})
	rest := machines[at:]
	if len(rest) <= page.Size() {
		return lifecycle.Page[lifecycle.Machine]{Items: slices.Clone(rest)}, nil
	}
	items := slices.Clone(rest[:page.Size()])
	return lifecycle.Page[lifecycle.Machine]{Items: items, Next: items[len(items)-1].InstanceID}, nil
}

func (c *Compute) recentListing() ([]lifecycle.Machine, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listing == nil || c.now().Sub(c.listing.at) > listingAge {
		c.listing = nil
		return nil, false
	}
	return c.listing.machines, true
}

func (c *Compute) list(ctx context.Context) ([]lifecycle.Machine, error) {
	at := c.now()
	var states []string
	for _, s := range types.InstanceStateName("").Values() {
		if s != types.InstanceStateNameTerminated {
			states = append(states, string(s))
		}
	}
	machines, err := c.found(ctx, "list machines", filter("tag:"+TagFleet, c.o.Prefix), filter("instance-state-name", states...))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(machines, byID)
	machines = slices.CompactFunc(machines, func(a, b lifecycle.Machine) bool { return strings.EqualFold(a.InstanceID, b.InstanceID) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listing == nil || at.After(c.listing.at) {
		c.listing = &listing{machines, at}
	}
	return machines, nil
}
