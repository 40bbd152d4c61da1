package ec2

import (
	"cmp"
	"context"
	"sync"
	"time"

	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/singleflight"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// API is what is called of EC2's client.
type API interface {
	CreateFleet(context.Context, *service.CreateFleetInput, ...func(*service.Options)) (*service.CreateFleetOutput, error)
	DescribeInstances(context.Context, *service.DescribeInstancesInput, ...func(*service.Options)) (*service.DescribeInstancesOutput, error)
	DescribeInstanceStatus(context.Context, *service.DescribeInstanceStatusInput, ...func(*service.Options)) (*service.DescribeInstanceStatusOutput, error)
	DescribeInstanceTypes(context.Context, *service.DescribeInstanceTypesInput, ...func(*service.Options)) (*service.DescribeInstanceTypesOutput, error)
	TerminateInstances(context.Context, *service.TerminateInstancesInput, ...func(*service.Options)) (*service.TerminateInstancesOutput, error)

	DescribeImages(context.Context, *service.DescribeImagesInput, ...func(*service.Options)) (*service.DescribeImagesOutput, error)
	DescribeSubnets(context.Context, *service.DescribeSubnetsInput, ...func(*service.Options)) (*service.DescribeSubnetsOutput, error)
	DescribeLaunchTemplates(context.Context, *service.DescribeLaunchTemplatesInput, ...func(*service.Options)) (*service.DescribeLaunchTemplatesOutput, error)
	DescribeLaunchTemplateVersions(context.Context, *service.DescribeLaunchTemplateVersionsInput, ...func(*service.Options)) (*service.DescribeLaunchTemplateVersionsOutput, error)
	CreateLaunchTemplate(context.Context, *service.CreateLaunchTemplateInput, ...func(*service.Options)) (*service.CreateLaunchTemplateOutput, error)
	CreateLaunchTemplateVersion(context.Context, *service.CreateLaunchTemplateVersionInput, ...func(*service.Options)) (*service.CreateLaunchTemplateVersionOutput, error)
	ModifyLaunchTemplate(context.Context, *service.ModifyLaunchTemplateInput, ...func(*service.Options)) (*service.ModifyLaunchTemplateOutput, error)
	DeleteLaunchTemplateVersions(context.Context, *service.DeleteLaunchTemplateVersionsInput, ...func(*service.Options)) (*service.DeleteLaunchTemplateVersionsOutput, error)
}

// Compute is the fleet's part of EC2. It is safe for concurrent use. What it remembers
// only saves calls, except for machines that EC2 does not show yet.
type Compute struct {
	api      API
	o        Options
	now      func() time.Time
	log      hclog.Logger
	pace     pacing
	userData map[string]string // by pool, as EC2 takes it

	asking singleflight.Group // for templates

	mu        sync.Mutex
	templates map[string]knownTemplate // by pool
	places    map[string][]place       // by pool
	sizes     map[string]size          // by instance type
	fresh     map[string]freshMachine  // by id
	short     map[offering]time.Time   // until when
	listing   *listing
}

// New checks the options. No call is made.
func New(api API, o Options) (*Compute, error) {
	userData, err := o.check()
	if err != nil {
		return nil, err
	}
	c := &Compute{
		api: api, o: o, now: o.Now, log: o.Logger, pace: newPacing(o.Rates), userData: userData,
		templates: map[string]knownTemplate{}, places: map[string][]place{}, sizes: knownSizes(),
		fresh: map[string]freshMachine{}, short: map[offering]time.Time{},
	}
	if c.now == nil {
		c.now = time.Now
	}
	c.log = cmp.Or(c.log, hclog.NewNullLogger())
	return c, nil
}

// offering is what EC2 may be short of.
type offering struct {
	usage lifecycle.UsageClass
	lifecycle.Offering
}
