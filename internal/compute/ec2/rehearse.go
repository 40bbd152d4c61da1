package ec2

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Rehearsal is a call that was made with DryRun: EC2 says whether the caller may make it, and does nothing.
type Rehearsal struct {
	Action string // as IAM names it
	Of     string // what the call was about
	// Err is why EC2 would refuse the call; nil: it would not.
	Err error
	// NotTried is why the call was not made; empty: it was.
	NotTried string
}

// Denied reports whether the caller lacks a permission for the call.
func (r Rehearsal) Denied() bool { return aws.Code(r.Err) == codeUnauthorized }

// Missing is the action that a denied call lacks, as far as EC2 says: a launch also needs iam:PassRole.
func (r Rehearsal) Missing() string {
	var said smithy.APIError
	if errors.As(r.Err, &said) {
		if named := notAuthorized.FindStringSubmatch(said.ErrorMessage()); named != nil {
			return named[1]
		}
	}
	return r.Action
}

// notAuthorized finds the action in EC2's message (IAM User Guide, "Troubleshoot access denied error messages").
var notAuthorized = regexp.MustCompile(`is not authorized to perform: ([a-z0-9-]+:[A-Za-z]+)`)

// The answers of EC2 to a call with DryRun (API reference, "Common query parameters").
const (
	codeDryRun       = "DryRunOperation"
	codeUnauthorized = "UnauthorizedOperation"
)

// errDryRun is for a call with DryRun that EC2 answers as if it had been made.
var errDryRun = errors.New("EC2 answered a dry run as a call")

// Rehearse makes the calls of a launch of each order, and of the end of a machine, with DryRun. An order needs no template version. Whether EC2
// looks for an instance before it looks at the permission to end it is documented nowhere, so TerminateInstances is tried on a machine of the
// fleet alone.
func (c *Compute) Rehearse(ctx context.Context, orders []lifecycle.LaunchOrder) []Rehearsal {
	var all []Rehearsal
	for _, o := range orders {
		all = append(all, c.rehearseLaunch(ctx, o)...)
	}
	return append(all, c.rehearseEnd(ctx))
}

func (c *Compute) rehearseLaunch(ctx context.Context, o lifecycle.LaunchOrder) []Rehearsal {
	of := fmt.Sprintf("pool %s, %s", o.Pool, o.UsageClass)
	fleet, run := Rehearsal{Action: "ec2:CreateFleet", Of: of}, Rehearsal{Action: "ec2:RunInstances", Of: of}
	in, err := c.rehearsed(ctx, &o)
	if err != nil {
		fleet.NotTried, run.NotTried = err.Error(), err.Error()
		return []Rehearsal{fleet, run}
	}
	in.DryRun = sdk.Bool(true)
	_, err = paced(ctx, c.pace.launches, "create fleet", c.api.CreateFleet, in)
	fleet.Err = dryRun(err)
	single, err := c.single(ctx, o, in)
	switch {
	case errors.Is(err, errNoneHibernates):
		run.Err = err
	case err != nil:
		run.NotTried = err.Error()
	case single == nil:
		run.NotTried = "no type of the catalogue fits the class and the patterns of the pool"
	}
	if single == nil {
		return []Rehearsal{fleet, run}
	}
	_, err = paced(ctx, c.pace.launches, "run instances", c.api.RunInstances, single)
	run.Err = dryRun(err)
	return []Rehearsal{fleet, run}
}

// rehearsed is the call that the order would become now.
func (c *Compute) rehearsed(ctx context.Context, o *lifecycle.LaunchOrder) (*service.CreateFleetInput, error) {
	if err := c.checkOrder(*o); err != nil {
		return nil, err
	}
	var err error
	if o.TemplateVersion, err = c.Template(ctx, o.Pool); err != nil {
		return nil, err
	}
	places, err := c.placesOf(ctx, o.Pool)
	if err != nil {
		return nil, err
	}
	return c.request(*o, places)
}

// single is the launch of one instance as the fleet makes it in the caller's name, from the first template of the call and in its first subnet;
// nil if the catalogue has no type for it. One that is to hibernate is of a type that EC2 names.
func (c *Compute) single(ctx context.Context, o lifecycle.LaunchOrder, in *service.CreateFleetInput) (*service.RunInstancesInput, error) {
	o = c.bounded(o)
	patterns, _ := allowedTypes(o)
	arch := c.templatesOf(o.Pool)[0].arch
	fits := func(t catalogue.Type) bool {
		return t.Arch == arch && sized(t, o) && (len(patterns) == 0 || matchesAny(patterns, t.Name))
	}
	all := slices.DeleteFunc(slices.Clone(catalogue.All()), func(t catalogue.Type) bool { return !fits(t) })
	if c.o.Pools[o.Pool].HibernateMiB > 0 {
		var err error
		if all, err = c.hibernating(ctx, all); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	config := in.LaunchTemplateConfigs[0]
	run := &service.RunInstancesInput{
		DryRun: sdk.Bool(true), MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), InstanceType: types.InstanceType(all[0].Name), SubnetId: config.Overrides[0].SubnetId,
		LaunchTemplate: &types.LaunchTemplateSpecification{
			LaunchTemplateName: config.LaunchTemplateSpecification.LaunchTemplateName, Version: config.LaunchTemplateSpecification.Version,
		},
		TagSpecifications: slices.DeleteFunc(slices.Clone(in.TagSpecifications), func(s types.TagSpecification) bool { return s.ResourceType == types.ResourceTypeFleet }),
	}
	if o.UsageClass == lifecycle.UsageSpot {
		run.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}
	}
	return run, nil
}

func (c *Compute) rehearseEnd(ctx context.Context) Rehearsal {
	r := Rehearsal{Action: "ec2:TerminateInstances"}
	machines, err := c.found(ctx, "find a machine of the fleet", filter("tag:"+TagFleet, c.o.Prefix), filter("instance-state-name", "running"))
	switch i := slices.IndexFunc(machines, func(m lifecycle.Machine) bool { return !m.Foreign }); {
	case err != nil:
		r.NotTried = err.Error()
	case i < 0:
		r.NotTried = "the fleet has no machine that runs, and only one of its own can be named in such a call; check again once a host is there"
	default:
		r.Of = machines[i].InstanceID
		_, err = paced(ctx, c.pace.terminations, "terminate instances", c.api.TerminateInstances, &service.TerminateInstancesInput{
			DryRun: sdk.Bool(true), InstanceIds: []string{r.Of},
		})
		r.Err = dryRun(err)
	}
	return r
}

// dryRun is what the answer to a call with DryRun says.
func dryRun(err error) error {
	switch {
	case err == nil:
		return errDryRun
	case aws.Code(err) == codeDryRun:
		return nil
	}
	return err
}
