package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// Launch starts the machines of an order in one call, which EC2 takes for any count that a request may have.
// The order's token makes a repeat the same launch. What came short is a *lifecycle.ShortageError beside the
// machines that came; what no later order would cure is lifecycle.ErrRefused.
func (c *Compute) Launch(ctx context.Context, o lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	what := fmt.Sprintf("launch %s of pool %s", plural.Of(o.Count, "machine", "machines"), o.Pool)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if err := c.checkOrder(o); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	places, err := c.placesOf(ctx, o.Pool)
	if err != nil {
		return nil, err
	}
	in, err := c.request(o, places)
	if errors.Is(err, errVersion) {
		return nil, shortage(o, 0, err.Error())
	}
	if err != nil {
		return nil, err
	}
	if err := await(ctx, c.pace.launched, o.Count, what); err != nil {
		return nil, err
	}
	if err := await(ctx, c.pace.launches, 1, what); err != nil {
		return nil, err
	}
	out, err := c.api.CreateFleet(ctx, in, c.patient)
	if err != nil {
		return c.notLaunched(ctx, what, o, zonesOf(in, places), err)
	}
	return c.launched(ctx, what, o, places, out)
}

// launchTimeout is how long one try of a launch may take. An instant fleet is answered once all its machines are placed, 200 of them in
// several zones. A shorter time, and the SDK would repeat the call while EC2 still works on the first.
const launchTimeout = time.Minute

// patient gives the calls of launches a client of their own.
func (c *Compute) patient(o *service.Options) {
	c.patience.Do(func() {
		if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			c.launching = client.WithTimeout(launchTimeout)
		}
	})
	if c.launching != nil {
		o.HTTPClient = c.launching
	}
}

// notLaunched says what the failed call means for the order.
func (c *Compute) notLaunched(ctx context.Context, what string, o lifecycle.LaunchOrder, zones []string, err error) ([]lifecycle.Machine, error) {
	code := aws.Code(err)
	switch {
	case code == codeOtherParameters:
		return c.launchedOtherwise(ctx, what, o, err)
	case code == codeNoVersion:
		c.forgetTemplate(o.Pool)
		return nil, shortage(o, 0, fmt.Sprintf("version %s of the launch template of pool %s is gone; the next launch takes the current one",
			o.TemplateVersion, o.Pool))
	case NoPools(err):
		return nil, shortage(o, 0, noPools(o, nil, zones))
	case aws.ClassOf(err) == aws.Capacity:
		return nil, shortage(o, 0, sentence(o, failure{code: code}))
	case aws.ClassOf(err) == aws.Gone || aws.ClassOf(err) == aws.Terminal:
		return nil, aws.Refused(what, err, remedy(code, o.Pool))
	}
	return nil, aws.Wrap(what, err)
}

// launchedOtherwise handles a token that was used for a call with other parameters. If
// that was this order under another configuration, the machines that it launched count,
// and the rest is left to the next order. If it was another order, that is an error.
func (c *Compute) launchedOtherwise(ctx context.Context, what string, o lifecycle.LaunchOrder, cause error) ([]lifecycle.Machine, error) {
	instances, err := c.instances(ctx, what, launchFilters(c.o.Prefix, o)...)
	if err != nil {
		return nil, err
	}
	for _, i := range instances {
		if tagMap(i.Tags)[TagOrder] != digest(o) {
			return nil, fmt.Errorf("%s: its token stands for another order: %w: %w", what, lifecycle.ErrExists, cause)
		}
	}
	machines, err := c.machines(ctx, instances)
	if err != nil || len(machines) >= o.Count {
		return machines, err
	}
	return machines, shortage(o, len(machines), "the launch was made before under another configuration and gave no more")
}

// launched makes machines of the answer, in its order.
func (c *Compute) launched(ctx context.Context, what string, o lifecycle.LaunchOrder, places []place, out *service.CreateFleetOutput) ([]lifecycle.Machine, error) {
	fresh, err := c.freshMachines(ctx, o, places, out.Instances)
	if err != nil {
		return nil, err
	}
	if len(fresh) < o.Count {
		// The answer to a repeated call may lack what the first one made.
		if fresh, err = c.withEarlier(ctx, what, o, fresh); err != nil {
			return nil, err
		}
	}
	c.remember(fresh)
	c.rememberShort(o, places, out.Errors)
	var ids []string
	for _, m := range fresh {
		ids = append(ids, m.InstanceID)
	}
	shown, err := c.look(ctx, what, ids)
	if err != nil {
		return nil, err
	}
	machines := c.inOrder(ids, shown)
	return machines, c.cameShort(what, o, places, len(machines), out.Errors)
}

// freshMachines returns the machines in the answer of a launch, as far as it describes them.
func (c *Compute) freshMachines(ctx context.Context, o lifecycle.LaunchOrder, places []place, sets []types.CreateFleetInstance) ([]lifecycle.Machine, error) {
	var names []string
	for _, set := range sets {
		names = append(names, string(set.InstanceType))
	}
	sizes, err := c.sizesOf(ctx, names)
	if err != nil {
		return nil, err
	}
	tags := c.machineTags(o)
	var machines []lifecycle.Machine
	for _, set := range sets {
		for _, id := range set.InstanceIds {
			m := tagged(id, tags)
			m.State, m.LaunchedAt = lifecycle.MachinePending, c.now().UTC().Round(0)
			m.UsageClass, m.Hibernates = o.UsageClass, c.o.Pools[o.Pool].HibernateMiB > 0
			m.Zone = zoneOf(places, sdk.ToString(set.SubnetId), sdk.ToString(set.AvailabilityZone), set.LaunchTemplateAndOverrides)
			sizes[string(set.InstanceType)].describe(&m, string(set.InstanceType))
			machines = append(machines, m)
		}
	}
	return machines, nil
}

func (c *Compute) withEarlier(ctx context.Context, what string, o lifecycle.LaunchOrder, fresh []lifecycle.Machine) ([]lifecycle.Machine, error) {
	earlier, err := c.instances(ctx, what, launchFilters(c.o.Prefix, o)...)
	if err != nil {
		return nil, err
	}
	machines, err := c.machines(ctx, earlier)
	if err != nil {
		return nil, err
	}
	for i, m := range machines {
		known := func(f lifecycle.Machine) bool { return f.InstanceID == m.InstanceID }
		if tagMap(earlier[i].Tags)[TagOrder] == digest(o) && !slices.ContainsFunc(fresh, known) {
			fresh = append(fresh, m)
		}
	}
	return fresh, nil
}

// zoneOf a part of an answer, which names its place in one way or another.
func zoneOf(places []place, subnet, zone string, used *types.LaunchTemplateAndOverridesResponse) string {
	if used != nil && used.Overrides != nil {
		zone, subnet = cmp.Or(zone, sdk.ToString(used.Overrides.AvailabilityZone)), cmp.Or(subnet, sdk.ToString(used.Overrides.SubnetId))
	}
	if i := slices.IndexFunc(places, func(p place) bool { return p.subnet == subnet }); zone == "" && i >= 0 {
		return places[i].zone
	}
	return zone
}

// Launched finds the machines that a launch made, gone ones too while EC2 shows
// them, and those that EC2 does not show yet if this process made them.
func (c *Compute) Launched(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	what := fmt.Sprintf("find the machines of launch %d of request %s", order.Number, order.RequestID)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if strings.ContainsAny(order.RequestID+order.RunID+order.Repository, "*?\\") {
		return nil, nil // EC2 would take it for a pattern, and no request has such an id
	}
	machines, err := c.found(ctx, what, launchFilters(c.o.Prefix, order)...)
	if err != nil {
		return nil, err
	}
	for _, m := range c.unseen(machines) {
		if m.From(order) {
			machines = append(machines, m)
		}
	}
	slices.SortFunc(machines, byID)
	return machines, nil
}

// terminateBatch is how many machines are ended in one call. EC2 takes more; but
// what is wrong with one of them fails the call for all.
const terminateBatch = 100

// Terminate ends machines; one that is unknown or gone is no error. One that EC2
// refuses to end does not keep the others: it is named in the error.
func (c *Compute) Terminate(ctx context.Context, instanceIDs []string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("terminate machines: %w", err)
	}
	var errs []error
	for batch := range slices.Chunk(valid(instanceIDs), terminateBatch) {
		err := c.terminate(ctx, batch)
		if err != nil && len(batch) > 1 && ofOne(err) {
			err = c.terminateEach(ctx, batch)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ofOne reports whether a failure may be one machine's alone: an unknown id, a
// protected machine, or one that the policy keeps from us for lack of our tag.
func ofOne(err error) bool {
	switch aws.ClassOf(err) {
	case aws.Retry, aws.Throttled, aws.Expired:
		return false
	}
	return true
}

func (c *Compute) terminateEach(ctx context.Context, ids []string) error {
	var errs []error
	for _, id := range ids {
		err := c.terminate(ctx, []string{id})
		if err != nil {
			errs = append(errs, err)
		}
		if err != nil && !ofOne(err) {
			break // the rest would fail for the same reason
		}
	}
	return errors.Join(errs...)
}

func (c *Compute) terminate(ctx context.Context, ids []string) error {
	what := fmt.Sprintf("terminate machine %s", ids[0])
	if len(ids) > 1 {
		what += fmt.Sprintf(" and %d more", len(ids)-1)
	}
	if err := await(ctx, c.pace.terminated, len(ids), what); err != nil {
		return err
	}
	_, err := paced(ctx, c.pace.terminations, what, c.api.TerminateInstances, &service.TerminateInstancesInput{InstanceIds: ids})
	if len(ids) == 1 && errors.Is(err, lifecycle.ErrNotFound) {
		return nil
	}
	return err
}
