// Package ec2 launches and ends hosts on EC2: fleets of type instant from a launch template per pool, with
// the requirements of a resource class in place of instance types, so that EC2 picks among all that fit.
//
// The request for an order is a function of the order and the configuration alone, because EC2 accepts a
// client token again only with the same parameters. What the adapter learns in the meantime, such as which
// offerings are short, goes into the next order before that is stored (Exhausted, Template).
//
// What a call of the port costs in requests to EC2, for n machines:
//
//	Launch      1 CreateFleet, ⌈n/200⌉ DescribeInstances; once per pool and process 1 DescribeSubnets;
//	            short of machines: 1 DescribeInstances more
//	Launched    1 DescribeInstances for each 1,000 machines found
//	Describe    ⌈n/200⌉ DescribeInstances, ⌈r/100⌉ DescribeInstanceStatus for the r of them that run
//	List        1 DescribeInstances for each 1,000 machines of the fleet, whatever the size of the pages
//	Terminate   ⌈n/100⌉ TerminateInstances; one more for each machine of a batch that was refused as a whole
//	Template    1 DescribeLaunchTemplates, at most once a minute and pool
//	Exhausted   none
//	Sells       none for a type of the catalogue; else up to 10 DescribeInstanceTypes, once in an hour for the same patterns
//	Ensure      for each pool: 1 DescribeSubnets, and for each architecture 1 DescribeImages and 1 or 2
//	            DescribeLaunchTemplateVersions if all is well, up to 3 more if not
//
// A machine of a type that the catalogue does not know costs one DescribeInstanceTypes per type and process.
package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/retry"
)

// API is what is called of EC2's client.
type API interface {
	CreateFleet(context.Context, *service.CreateFleetInput, ...func(*service.Options)) (*service.CreateFleetOutput, error)
	DescribeInstances(context.Context, *service.DescribeInstancesInput, ...func(*service.Options)) (*service.DescribeInstancesOutput, error)
	DescribeInstanceStatus(context.Context, *service.DescribeInstanceStatusInput, ...func(*service.Options)) (*service.DescribeInstanceStatusOutput, error)
	DescribeInstanceTypes(context.Context, *service.DescribeInstanceTypesInput, ...func(*service.Options)) (*service.DescribeInstanceTypesOutput, error)
	TerminateInstances(context.Context, *service.TerminateInstancesInput, ...func(*service.Options)) (*service.TerminateInstancesOutput, error)
	StopInstances(context.Context, *service.StopInstancesInput, ...func(*service.Options)) (*service.StopInstancesOutput, error)
	StartInstances(context.Context, *service.StartInstancesInput, ...func(*service.Options)) (*service.StartInstancesOutput, error)
	CreateReplaceRootVolumeTask(context.Context, *service.CreateReplaceRootVolumeTaskInput, ...func(*service.Options)) (*service.CreateReplaceRootVolumeTaskOutput, error)
	DescribeReplaceRootVolumeTasks(context.Context, *service.DescribeReplaceRootVolumeTasksInput, ...func(*service.Options)) (*service.DescribeReplaceRootVolumeTasksOutput, error)

	// RunInstances is called with DryRun alone.
	RunInstances(context.Context, *service.RunInstancesInput, ...func(*service.Options)) (*service.RunInstancesOutput, error)

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
	// launching makes the calls of launches; nil: none was made yet, or the client of the others makes them.
	launching service.HTTPClient
	patience  sync.Once
	// strangers are the living instances that were logged as foreign, by id.
	strangers sync.Map

	mu        sync.Mutex
	templates map[string]knownTemplate // by pool
	places    map[string][]place       // by pool
	sizes     map[string]size          // by instance type
	fresh     map[string]freshMachine  // by id
	short     map[offering]time.Time   // until when
	sold      map[string]sold          // by class and patterns
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
		fresh: map[string]freshMachine{}, short: map[offering]time.Time{}, sold: map[string]sold{},
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

// Options say what a fleet launches. Prefix, Region and Pools are required.
type Options struct {
	// Prefix names the deployment: the value of the tag remuda:fleet, which sets its machines apart from all
	// others of the account, and the beginning of the names of its launch templates. 1 to 64 characters.
	Prefix string
	// Region is passed to the hosts, which find their tables by it and the prefix.
	Region string
	// RoleID is the id of the hosts' role, such as AROAEXAMPLE; it becomes a tag of each machine, so that a
	// host of an older role keeps its host key. Empty: the host key is the instance id.
	RoleID string
	// InstanceProfile is the name of the hosts' profile. Empty: hosts have no
	// credentials, which only an emulator can do with.
	InstanceProfile string
	// Pools, by name.
	Pools map[string]Pool

	// Rates are how fast EC2 is called. The zero value of each takes its default.
	Rates Rates
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Logger gets warnings about what is odd but harmless; nil for none.
	Logger hclog.Logger
}

// Pool is how the machines of a pool are made. What hosts a request gets is in its order; this is the rest.
type Pool struct {
	// Images are the ids of the machine images by architecture, x86_64 or arm64
	// or both. Only types of these architectures are launched.
	Images map[string]string
	// Subnets to launch into. A launch uses one of each zone, since a fleet cannot have two: the others
	// spread the load and stand in for one without free addresses.
	Subnets []string
	// SecurityGroups of the machines, by id; none: the default group of the VPC.
	SecurityGroups []string
	// RootVolumeGiB is the size of the root volume, 1 to 16384; 0: the image's own.
	RootVolumeGiB int
	// IOPS and ThroughputMiB, a second, are what that gp3 volume is provisioned with; 0: EC2's own, 3,000 and 125.
	IOPS, ThroughputMiB int
	// KMSKeyID is the key of the root volume, as EC2 takes it; empty: the account's default for EBS.
	KMSKeyID string
	// HibernateMiB has machines launched that can be hibernated, which have at most so much memory; 0: none can. Such a pool has no spot machines:
	// EC2 would hibernate them in place of ending them when it takes them back.
	HibernateMiB int
	// Burstable allows types such as t3, which are slow once their credits are
	// spent: a build on one takes as long as its luck says.
	Burstable bool
	// CPUBaseline is an instance family, such as c6i: EC2 leaves out types whose CPU is slower. Empty: none.
	CPUBaseline string
	// Tags for cost allocation, on instances, volumes, network interfaces and launch templates. At most 30;
	// keys must be such that a host can read them in its metadata: letters, digits and + - = . _ : @.
	Tags map[string]string
	// PreRunner is a script that the agent runs once per boot before it registers the first runner; it begins
	// with #!. It must not have secrets: everyone with permission to describe launch templates can read it.
	PreRunner []byte
	// PostRelease is a script that the host runs as root whenever it has been
	// cleaned after a run; as PreRunner else.
	PostRelease []byte
	// Privileged says that a job may become root on its host: the agent leaves it
	// the ways to that, sudo and docker.
	Privileged bool
	// Caches are directories of jobs that outlive their runs.
	Caches []cache.Spec
	// JobsReadMetadata lets jobs read the instance metadata, and with it the
	// credentials of the host's role. Only for pools that run trusted code.
	JobsReadMetadata bool
}

// maxTags leaves room for our own among EC2's 50 of a resource.
const maxTags = 30

// check says everything that is wrong, and gives the user data of each pool.
func (o Options) check() (map[string]string, error) {
	var wrong []error
	if o.Prefix == "" || o.Region == "" || len(o.Pools) == 0 {
		wrong = append(wrong, errors.New("a prefix, a region and at least one pool are required"))
	}
	userData := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.Pools)) {
		pool := o.Pools[name]
		data, err := o.userData(name)
		userData[name] = data
		for _, err := range append(pool.check(), err) {
			if err != nil {
				wrong = append(wrong, fmt.Errorf("pool %s: %w", name, err))
			}
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("set up EC2: %w", errors.Join(wrong...))
	}
	return userData, nil
}

func (p Pool) check() []error {
	var wrong []error
	if len(p.Images) == 0 || len(p.Subnets) == 0 {
		wrong = append(wrong, errors.New("at least one image and one subnet are required"))
	}
	for _, arch := range slices.Sorted(maps.Keys(p.Images)) {
		if arch != catalogue.ArchX86 && arch != catalogue.ArchArm {
			wrong = append(wrong, fmt.Errorf("architecture %q: must be %s or %s", arch, catalogue.ArchX86, catalogue.ArchArm))
		}
	}
	if len(p.Tags) > maxTags {
		wrong = append(wrong, fmt.Errorf("%d tags: must be at most %d", len(p.Tags), maxTags))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		if strings.HasPrefix(key, tagPrefix) || strings.HasPrefix(strings.ToLower(key), "aws:") {
			wrong = append(wrong, fmt.Errorf("tag %s: keys that begin with aws: or %s are taken", key, tagPrefix))
		}
	}
	return wrong
}

// Actions are what the adapter calls, and what EC2 does for it in the caller's
// name, for the policies of docs/iam.
func Actions() []aws.Permission {
	return []aws.Permission{
		{Action: "ec2:CreateFleet", Role: aws.RoleControld, On: aws.OnFleet, Why: "launch the hosts of a request"},
		{Action: "ec2:RunInstances", Role: aws.RoleControld, On: aws.OnLaunches, Why: "CreateFleet launches instances in the caller's name"},
		{Action: "ec2:CreateTags", Role: aws.RoleControld, On: aws.OnNewTags, Why: "CreateFleet tags what it launches; only while it launches it"},
		{Action: "iam:PassRole", Role: aws.RoleControld, On: aws.OnHostRole, Why: "CreateFleet gives the hosts their role"},
		{Action: "kms:DescribeKey", Role: aws.RoleControld, On: aws.OnVolumeKeys, Why: "EC2 encrypts the volume of a launch in the caller's name"},
		{Action: "kms:GenerateDataKeyWithoutPlaintext", Role: aws.RoleControld, On: aws.OnVolumeKeys, Why: "the same"},
		{Action: "kms:Decrypt", Role: aws.RoleControld, On: aws.OnVolumeKeys, Why: "the same, from the snapshot of an image with the key"},
		{Action: "kms:ReEncryptFrom", Role: aws.RoleControld, On: aws.OnVolumeKeys, Why: "the same, from an image with another key"},
		{Action: "kms:ReEncryptTo", Role: aws.RoleControld, On: aws.OnVolumeKeys, Why: "the same"},
		{Action: "kms:CreateGrant", Role: aws.RoleControld, On: aws.OnVolumeGrants, Why: "EC2 may use the key for as long as the volume is attached"},
		{Action: "ec2:TerminateInstances", Role: aws.RoleControld, On: aws.OnMachines, Why: "end hosts; only those with the tag of the fleet"},
		{Action: "ec2:StopInstances", Role: aws.RoleControld, On: aws.OnMachines, Why: "stop idle hosts of pools with stopped; only those with the tag of the fleet. Without such pools it is left out"},
		{Action: "ec2:StartInstances", Role: aws.RoleControld, On: aws.OnMachines, Why: "start stopped hosts for a run; the same"},
		{Action: "ec2:CreateReplaceRootVolumeTask", Role: aws.RoleControld, On: aws.OnRootVolumes, Why: "replace the root volumes of hosts of pools with reset: root-volume; only those with the tag of the fleet. Without such pools it is left out"},
		{Action: "ec2:DescribeReplaceRootVolumeTasks", Role: aws.RoleControld, On: aws.OnAll, Why: "see how far that is; the same"},
		{Action: "ec2:DescribeInstances", Role: aws.RoleControld, On: aws.OnAll, Why: "look for the machines of a launch, of hosts, and of the fleet"},
		{Action: "ec2:DescribeInstanceStatus", Role: aws.RoleControld, On: aws.OnAll, Why: "see whether a silent host is impaired"},
		{Action: "ec2:DescribeInstanceTypes", Role: aws.RoleControld, On: aws.OnAll, Why: "learn the vCPU and memory of a type that the catalogue lacks"},
		{Action: "ec2:DescribeSubnets", Role: aws.RoleControld, On: aws.OnAll, Why: "learn the zones of the subnets to launch into"},
		{Action: "ec2:DescribeLaunchTemplates", Role: aws.RoleControld, On: aws.OnAll, Why: "find the version that a launch names; config check --aws: look for other fleets"},

		{Action: "ec2:DescribeSubnets", Role: aws.RoleRefresh, On: aws.OnAll, Why: "check that the subnets of a pool are there"},
		{Action: "ec2:DescribeImages", Role: aws.RoleRefresh, On: aws.OnAll, Why: "check a pool's images and find their root devices"},
		{Action: "ec2:DescribeLaunchTemplateVersions", Role: aws.RoleRefresh, On: aws.OnAll, Why: "compare launch templates with the configuration"},
		{Action: "ec2:CreateLaunchTemplate", Role: aws.RoleRefresh, On: aws.OnNewTemplates, Why: "create the launch template of a pool"},
		{Action: "ec2:CreateTags", Role: aws.RoleRefresh, On: aws.OnNewTags, Why: "CreateLaunchTemplate tags the template; only while it creates it"},
		{Action: "ec2:CreateLaunchTemplateVersion", Role: aws.RoleRefresh, On: aws.OnTemplates, Why: "correct a launch template"},
		{Action: "ec2:ModifyLaunchTemplate", Role: aws.RoleRefresh, On: aws.OnTemplates, Why: "make the right version the default"},
		{Action: "ec2:DeleteLaunchTemplateVersions", Role: aws.RoleRefresh, On: aws.OnTemplates, Why: "delete versions that nothing names any more"},
	}
}

// Rate is a bucket of tokens: how many there may be, and how many come back each second.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Rates keep the calls of a process below those at which EC2 throttles, which holds for the whole account and
// region: a throttled launch costs more time than a paced one, and throttles others too. What other programs
// of the account use up is left to the retries.
//
// Source of the defaults: "Request throttling for the Amazon EC2 API". Refill as
// EC2's, and half of its buckets, so that a second replica has the other half.
type Rates struct {
	Launches     Rate // CreateFleet requests; as RunInstances: EC2 has 5, and 2 a second
	Launched     Rate // machines of launches; EC2 has 1,000, and 2 a second
	Terminations Rate // TerminateInstances requests; mutating: EC2 has 50, and 5 a second
	Terminated   Rate // machines of terminations; EC2 has 1,000, and 20 a second
	Reads        Rate // Describe requests, each action for itself; EC2 has 100, and 20 a second
	Changes      Rate // other changes, of launch templates; mutating: EC2 has 50, and 5 a second
}

var defaultRates = Rates{
	Launches: Rate{2, 3}, Launched: Rate{2, 500},
	Terminations: Rate{5, 25}, Terminated: Rate{20, 500},
	Reads: Rate{20, 50}, Changes: Rate{5, 25},
}

// LaunchRate is how fast this process may call CreateFleet. Launches beyond it are better made in one call.
func (c *Compute) LaunchRate() Rate {
	return Rate{PerSecond: float64(c.pace.launches.Limit()), Burst: c.pace.launches.Burst()}
}

type pacing struct {
	launches, launched, terminations, terminated, reads, changes *rate.Limiter
}

func newPacing(r Rates) pacing {
	limiter := func(r, def Rate) *rate.Limiter {
		if r.PerSecond <= 0 || r.Burst <= 0 {
			r = def
		}
		return rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)
	}
	d := defaultRates
	return pacing{
		launches: limiter(r.Launches, d.Launches), launched: limiter(r.Launched, d.Launched),
		terminations: limiter(r.Terminations, d.Terminations), terminated: limiter(r.Terminated, d.Terminated),
		reads: limiter(r.Reads, d.Reads), changes: limiter(r.Changes, d.Changes),
	}
}

// await takes n tokens as they become available. If the caller's deadline comes first, it
// takes none and returns at once an error that says when to try again.
func await(ctx context.Context, l *rate.Limiter, n int, what string) error {
	var taken []*rate.Reservation
	var delay time.Duration
	for left := n; left > 0; left -= l.Burst() {
		r := l.ReserveN(time.Now(), min(left, l.Burst()))
		taken, delay = append(taken, r), max(delay, r.Delay())
	}
	giveBack := func() {
		for _, r := range slices.Backward(taken) {
			r.Cancel()
		}
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < delay {
		giveBack()
		return &lifecycle.UnavailableError{What: what, RetryAfter: delay, Err: errPaced}
	}
	if delay <= 0 {
		return nil
	}
	if retry.Sleep(ctx, delay) != nil {
		giveBack()
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return nil
}

// paced makes a call to EC2 when its turn has come. It describes an error by what, and keeps its class.
func paced[In, Out any](ctx context.Context, l *rate.Limiter, what string, call func(context.Context, *In, ...func(*service.Options)) (*Out, error), in *In) (*Out, error) {
	if err := await(ctx, l, 1, what); err != nil {
		return nil, err
	}
	out, err := call(ctx, in)
	if err != nil {
		return nil, aws.Wrap(what, err)
	}
	return out, nil
}

var errPaced = errors.New("calls to EC2 are paced to stay below its limits, and the caller's deadline comes before its turn")
