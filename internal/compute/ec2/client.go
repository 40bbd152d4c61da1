package ec2

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
)

// NewClient is the client of an account, with the operations of API alone. The SDK's has 700: html/template finds methods by their names, so
// the linker keeps all exported methods of each type that is ever in an interface, which were 28 MB of the program.
func NewClient(cfg sdk.Config) API {
	c := service.NewFromConfig(cfg)
	return &client{
		createFleet:                    c.CreateFleet,
		describeInstances:              c.DescribeInstances,
		describeInstanceStatus:         c.DescribeInstanceStatus,
		describeInstanceTypes:          c.DescribeInstanceTypes,
		terminateInstances:             c.TerminateInstances,
		stopInstances:                  c.StopInstances,
		startInstances:                 c.StartInstances,
		createReplaceRootVolumeTask:    c.CreateReplaceRootVolumeTask,
		describeReplaceRootVolumeTasks: c.DescribeReplaceRootVolumeTasks,
		runInstances:                   c.RunInstances,
		describeImages:                 c.DescribeImages,
		describeSubnets:                c.DescribeSubnets,
		describeLaunchTemplates:        c.DescribeLaunchTemplates,
		describeLaunchTemplateVersions: c.DescribeLaunchTemplateVersions,
		createLaunchTemplate:           c.CreateLaunchTemplate,
		createLaunchTemplateVersion:    c.CreateLaunchTemplateVersion,
		modifyLaunchTemplate:           c.ModifyLaunchTemplate,
		deleteLaunchTemplateVersions:   c.DeleteLaunchTemplateVersions,
	}
}

// call is an operation.
type call[In, Out any] func(context.Context, *In, ...func(*service.Options)) (*Out, error)

type client struct {
	createFleet                    call[service.CreateFleetInput, service.CreateFleetOutput]
	describeInstances              call[service.DescribeInstancesInput, service.DescribeInstancesOutput]
	describeInstanceStatus         call[service.DescribeInstanceStatusInput, service.DescribeInstanceStatusOutput]
	describeInstanceTypes          call[service.DescribeInstanceTypesInput, service.DescribeInstanceTypesOutput]
	terminateInstances             call[service.TerminateInstancesInput, service.TerminateInstancesOutput]
	stopInstances                  call[service.StopInstancesInput, service.StopInstancesOutput]
	startInstances                 call[service.StartInstancesInput, service.StartInstancesOutput]
	createReplaceRootVolumeTask    call[service.CreateReplaceRootVolumeTaskInput, service.CreateReplaceRootVolumeTaskOutput]
	describeReplaceRootVolumeTasks call[service.DescribeReplaceRootVolumeTasksInput, service.DescribeReplaceRootVolumeTasksOutput]
	runInstances                   call[service.RunInstancesInput, service.RunInstancesOutput]
	describeImages                 call[service.DescribeImagesInput, service.DescribeImagesOutput]
	describeSubnets                call[service.DescribeSubnetsInput, service.DescribeSubnetsOutput]
	describeLaunchTemplates        call[service.DescribeLaunchTemplatesInput, service.DescribeLaunchTemplatesOutput]
	describeLaunchTemplateVersions call[service.DescribeLaunchTemplateVersionsInput, service.DescribeLaunchTemplateVersionsOutput]
	createLaunchTemplate           call[service.CreateLaunchTemplateInput, service.CreateLaunchTemplateOutput]
	createLaunchTemplateVersion    call[service.CreateLaunchTemplateVersionInput, service.CreateLaunchTemplateVersionOutput]
	modifyLaunchTemplate           call[service.ModifyLaunchTemplateInput, service.ModifyLaunchTemplateOutput]
	deleteLaunchTemplateVersions   call[service.DeleteLaunchTemplateVersionsInput, service.DeleteLaunchTemplateVersionsOutput]
}

func (c *client) CreateFleet(ctx context.Context, in *service.CreateFleetInput, options ...func(*service.Options)) (*service.CreateFleetOutput, error) {
	return c.createFleet(ctx, in, options...)
}

func (c *client) DescribeInstances(ctx context.Context, in *service.DescribeInstancesInput, options ...func(*service.Options)) (*service.DescribeInstancesOutput, error) {
	return c.describeInstances(ctx, in, options...)
}

func (c *client) DescribeInstanceStatus(ctx context.Context, in *service.DescribeInstanceStatusInput, options ...func(*service.Options)) (*service.DescribeInstanceStatusOutput, error) {
	return c.describeInstanceStatus(ctx, in, options...)
}

func (c *client) DescribeInstanceTypes(ctx context.Context, in *service.DescribeInstanceTypesInput, options ...func(*service.Options)) (*service.DescribeInstanceTypesOutput, error) {
	return c.describeInstanceTypes(ctx, in, options...)
}

func (c *client) TerminateInstances(ctx context.Context, in *service.TerminateInstancesInput, options ...func(*service.Options)) (*service.TerminateInstancesOutput, error) {
	return c.terminateInstances(ctx, in, options...)
}

func (c *client) StopInstances(ctx context.Context, in *service.StopInstancesInput, options ...func(*service.Options)) (*service.StopInstancesOutput, error) {
	return c.stopInstances(ctx, in, options...)
}

func (c *client) StartInstances(ctx context.Context, in *service.StartInstancesInput, options ...func(*service.Options)) (*service.StartInstancesOutput, error) {
	return c.startInstances(ctx, in, options...)
}

func (c *client) CreateReplaceRootVolumeTask(ctx context.Context, in *service.CreateReplaceRootVolumeTaskInput, options ...func(*service.Options)) (*service.CreateReplaceRootVolumeTaskOutput, error) {
	return c.createReplaceRootVolumeTask(ctx, in, options...)
}

func (c *client) DescribeReplaceRootVolumeTasks(ctx context.Context, in *service.DescribeReplaceRootVolumeTasksInput, options ...func(*service.Options)) (*service.DescribeReplaceRootVolumeTasksOutput, error) {
	return c.describeReplaceRootVolumeTasks(ctx, in, options...)
}

func (c *client) RunInstances(ctx context.Context, in *service.RunInstancesInput, options ...func(*service.Options)) (*service.RunInstancesOutput, error) {
	return c.runInstances(ctx, in, options...)
}

func (c *client) DescribeImages(ctx context.Context, in *service.DescribeImagesInput, options ...func(*service.Options)) (*service.DescribeImagesOutput, error) {
	return c.describeImages(ctx, in, options...)
}

func (c *client) DescribeSubnets(ctx context.Context, in *service.DescribeSubnetsInput, options ...func(*service.Options)) (*service.DescribeSubnetsOutput, error) {
	return c.describeSubnets(ctx, in, options...)
}

func (c *client) DescribeLaunchTemplates(ctx context.Context, in *service.DescribeLaunchTemplatesInput, options ...func(*service.Options)) (*service.DescribeLaunchTemplatesOutput, error) {
	return c.describeLaunchTemplates(ctx, in, options...)
}

func (c *client) DescribeLaunchTemplateVersions(ctx context.Context, in *service.DescribeLaunchTemplateVersionsInput, options ...func(*service.Options)) (*service.DescribeLaunchTemplateVersionsOutput, error) {
	return c.describeLaunchTemplateVersions(ctx, in, options...)
}

func (c *client) CreateLaunchTemplate(ctx context.Context, in *service.CreateLaunchTemplateInput, options ...func(*service.Options)) (*service.CreateLaunchTemplateOutput, error) {
	return c.createLaunchTemplate(ctx, in, options...)
}

func (c *client) CreateLaunchTemplateVersion(ctx context.Context, in *service.CreateLaunchTemplateVersionInput, options ...func(*service.Options)) (*service.CreateLaunchTemplateVersionOutput, error) {
	return c.createLaunchTemplateVersion(ctx, in, options...)
}

func (c *client) ModifyLaunchTemplate(ctx context.Context, in *service.ModifyLaunchTemplateInput, options ...func(*service.Options)) (*service.ModifyLaunchTemplateOutput, error) {
	return c.modifyLaunchTemplate(ctx, in, options...)
}

func (c *client) DeleteLaunchTemplateVersions(ctx context.Context, in *service.DeleteLaunchTemplateVersionsInput, options ...func(*service.Options)) (*service.DeleteLaunchTemplateVersionsOutput, error) {
	return c.deleteLaunchTemplateVersions(ctx, in, options...)
}
