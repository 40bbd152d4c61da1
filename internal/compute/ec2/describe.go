package ec2

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// EC2's limits: values of a filter, ids of a status call, instances of a page.
const (
	describeBatch = 200
	statusBatch   = 100
	pageSize      = 1000
)

// instanceID: what is not one is gone without asking. In a filter it would be a pattern.
var instanceID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

func valid(ids []string) []string {
	var list []string
	for _, id := range ids {
		if instanceID.MatchString(id) && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// Describe returns each machine asked for, in that order. One that EC2 does not know is gone, unless this
// process launched it within the last minutes: then EC2 does not show it yet, and it is pending.
func (c *Compute) Describe(ctx context.Context, instanceIDs []string) ([]lifecycle.Machine, error) {
	what := "describe " + plural.Of(len(instanceIDs), "machine", "machines")
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	shown, err := c.look(ctx, what, instanceIDs)
	if err != nil {
		return nil, err
	}
	if err := c.findImpaired(ctx, what, shown); err != nil {
		return nil, err
	}
	return c.inOrder(instanceIDs, shown), nil
}

// look finds the machines that EC2 shows, by id.
func (c *Compute) look(ctx context.Context, what string, ids []string) (map[string]lifecycle.Machine, error) {
	shown := map[string]lifecycle.Machine{}
	for batch := range slices.Chunk(valid(ids), describeBatch) {
		// By a filter: asked for as ids, one unknown fails the call for all.
		machines, err := c.found(ctx, what, filter("instance-id", batch...))
		if err != nil {
			return nil, err
		}
		for _, m := range machines {
			shown[m.InstanceID] = m
		}
	}
	return shown, nil
}

// inOrder are the machines with the ids, fresh or gone if they are not shown.
func (c *Compute) inOrder(ids []string, shown map[string]lifecycle.Machine) []lifecycle.Machine {
	var machines []lifecycle.Machine
	for _, id := range ids {
		m, ok := shown[id]
		if !ok {
			m, ok = c.recalled(id)
		}
		if !ok {
			m = lifecycle.Machine{InstanceID: id, State: lifecycle.MachineGone}
		}
		machines = append(machines, m)
	}
	return machines
}

// findImpaired asks for EC2's own checks of the machines that run. An instance that is gone by now fails its
// batch: that of the batch stays unknown, and unknown is not impaired.
func (c *Compute) findImpaired(ctx context.Context, what string, machines map[string]lifecycle.Machine) error {
	var running []string
	for id, m := range machines {
		if m.State == lifecycle.MachineRunning {
			running = append(running, id)
		}
	}
	slices.Sort(running)
	for batch := range slices.Chunk(running, statusBatch) {
		out, err := paced(ctx, c.pace.reads, what, c.api.DescribeInstanceStatus, &service.DescribeInstanceStatusInput{InstanceIds: batch})
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			continue
		case err != nil:
			return err
		}
		for _, s := range out.InstanceStatuses {
			if impaired(s.InstanceStatus) || impaired(s.SystemStatus) {
				m := machines[sdk.ToString(s.InstanceId)]
				m.Impaired = true
				machines[m.InstanceID] = m
			}
		}
	}
	return nil
}

func impaired(s *types.InstanceStatusSummary) bool {
	return s != nil && s.Status == types.SummaryStatusImpaired
}

// instances reads all pages of what the filters let through.
func (c *Compute) instances(ctx context.Context, what string, filters ...types.Filter) ([]types.Instance, error) {
	var all []types.Instance
	pages := service.NewDescribeInstancesPaginator(c.api, &service.DescribeInstancesInput{
		Filters: filters, MaxResults: sdk.Int32(pageSize),
	})
	for pages.HasMorePages() {
		if err := await(ctx, c.pace.reads, 1, what); err != nil {
			return nil, err
		}
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, aws.Wrap(what, err)
		}
		for _, r := range page.Reservations {
			all = append(all, r.Instances...)
		}
	}
	return all, nil
}

// found are the machines that the filters let through.
func (c *Compute) found(ctx context.Context, what string, filters ...types.Filter) ([]lifecycle.Machine, error) {
	instances, err := c.instances(ctx, what, filters...)
	if err != nil {
		return nil, err
	}
	return c.machines(ctx, instances)
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: sdk.String(name), Values: values}
}

func launchFilters(prefix string, o lifecycle.LaunchOrder) []types.Filter {
	return []types.Filter{
		filter("tag:"+TagFleet, prefix),
		filter("tag:"+TagRepository, o.Repository),
		filter("tag:"+TagRunID, o.RunID),
		filter("tag:"+TagRequestID, o.RequestID),
		filter("tag:"+TagLaunch, strconv.Itoa(o.Number)),
	}
}

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
