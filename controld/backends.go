package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	sqsapi "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	"github.com/remuda-ci/remuda/internal/queue/notices"
	"github.com/remuda-ci/remuda/internal/queue/sqs"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// newAWSBackends makes the backends of a fleet in AWS. It makes one call, for the id of the
// hosts' role, which fails early if there are no credentials.
func newAWSBackends(ctx context.Context, c *config.Config, in *inputs.Inputs, log hclog.Logger) (*backends, error) {
	clock, calls := &aws.Clock{}, &aws.Calls{}
	cfg, err := loadAWS(ctx, c, clock, calls)
	if err != nil {
		return nil, err
	}
	records := dynamo.New(dynamodb.NewFromConfig(cfg), storeOptions(c, log))
	role, err := findHostRole(ctx, cfg, c.AWS.InstanceProfile, records.Store, log)
	if err != nil {
		return nil, err
	}
	o := newAWSOptions(c, in, cfg.Region, role.id, log)
	compute, err := ec2.New(ec2.NewClient(cfg), o.compute)
	if err != nil {
		return nil, &configError{err}
	}
	messages := sqs.New(sqsapi.NewFromConfig(cfg), o.queue)
	ensure := []fleet.Ensure{records.Ensure, messages.Ensure, compute.Ensure}
	var heard fleet.Notices
	if o.notices != nil {
		queue := notices.New(sqsapi.NewFromConfig(cfg), *o.notices)
		heard, ensure = queue, append(ensure, queue.Ensure)
	}
	return &backends{
		store: records.Store, queue: messages, compute: compute,
		hostKey:         func(instanceID string) string { return role.id + ":" + instanceID },
		templateVersion: compute.Template,
		exhausted:       compute.Exhausted,
		sells:           sellsOf(compute),
		outside:         compute.Outside,
		region:          cfg.Region,
		launchRate:      fleet.Rate(compute.LaunchRate()),
		ensure:          role.keptAfter(fleet.Together(ensure...)),
		keepRole:        role.keep,
		notices:         heard,
		clockOffset:     clock.Offset,
		calls:           calls,
		probe:           &accountProbe{rehearse: compute.Rehearse, quota: quotaOf(cfg), fleets: compute.Fleets},
		close:           func() error { return nil },
	}, nil
}

// sellsOf asks the catalogue of EC2.
func sellsOf(compute *ec2.Compute) func(fleet.Class, ...[]string) bool {
	return func(class fleet.Class, patterns ...[]string) bool {
		return compute.Sells(ec2.Class(class), patterns...)
	}
}

// storeOptions are those of the records of a fleet in AWS.
func storeOptions(c *config.Config, log hclog.Logger) dynamo.Options {
	return dynamo.Options{Prefix: c.AWS.Prefix, Tags: c.AWS.Tags, Logger: log.Named("store")}
}

// awsOptions are what the backends of a fleet in AWS are made with, beside those of the store.
type awsOptions struct {
	compute ec2.Options
	queue   sqs.Options
	notices *notices.Options // nil: none are received
}

// newAWSOptions are those of a configuration, for hosts with the role of this id.
func newAWSOptions(c *config.Config, in *inputs.Inputs, region, roleID string, log hclog.Logger) awsOptions {
	o := awsOptions{
		compute: ec2.Options{
			Prefix: c.AWS.Prefix, Region: region, RoleID: roleID, InstanceProfile: c.AWS.InstanceProfile, Pools: ec2Pools(c, in), Logger: log.Named("ec2"),
		},
		queue: sqs.Options{Prefix: c.AWS.Prefix, Tags: c.AWS.Tags, Queues: queues(c), Retention: retention(c), Logger: log.Named("queue")},
	}
	if c.AWS.Notices {
		o.notices = &notices.Options{Prefix: c.AWS.Prefix, Tags: c.AWS.Tags, Logger: log.Named("notices")}
	}
	return o
}

// ec2Pools are the pools of the configuration, in the types of the EC2 adapter.
func ec2Pools(c *config.Config, in *inputs.Inputs) map[string]ec2.Pool {
	pools := map[string]ec2.Pool{}
	for name, p := range c.Pools {
		e := c.PoolEC2(name)
		pools[name] = ec2.Pool{
			Images: e.Images, Subnets: e.Subnets, SecurityGroups: e.SecurityGroups, RootVolumeGiB: e.RootVolumeGiB,
			IOPS: e.IOPS, ThroughputMiB: e.ThroughputMiB, KMSKeyID: e.KMSKeyID, CPUBaseline: e.CPUBaseline,
			Burstable: e.Burstable != nil && *e.Burstable, Tags: e.Tags, Privileged: p.Privileged,
			HibernateMiB: c.HibernateMiB(name), JobsReadMetadata: p.JobsReadMetadata, PreRunner: in.PreRunner[name], PostRelease: in.PostRelease[name], Caches: p.CacheSpecs(),
		}
	}
	return pools
}

// queues are the queues of every resource and usage class that a pool offers.
func queues(c *config.Config) []lifecycle.QueueName {
	all := map[lifecycle.QueueName]bool{}
	for name := range c.Pools {
		for _, class := range c.PoolResourceClasses(name) {
			for _, usage := range c.PoolUsageClasses(name) {
				all[lifecycle.QueueName{ResourceClass: class, UsageClass: usage}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b lifecycle.QueueName) int {
		return cmp.Or(strings.Compare(a.ResourceClass, b.ResourceClass), strings.Compare(string(a.UsageClass), string(b.UsageClass)))
	})
}

// retentionMargin is how much longer a message is kept than its host may wait.
const retentionMargin = 2 * time.Minute

// retention is how long a message is kept: the longest that the hosts of a pool wait as a rule, since pools share queues. A host that outlives
// its message is found by the index by-pool: one that is held, that GitHub or AWS hold up, or that no run has used in a pool that launches none
// ahead of need.
func retention(c *config.Config) time.Duration {
	var longest time.Duration
	for name, pool := range c.Pools {
		rules := c.Policy(name)
		longest = max(longest, rules.IdleTime)
		if pool.Ahead() != nil {
			longest = max(longest, rules.WarmTime)
		}
	}
	return longest + retentionMargin
}

// backends are the adapters that a configuration names, and what the use-cases must know of them.
type backends struct {
	store           store.Store
	queue           fleet.Queue
	compute         fleet.Compute
	hostKey         func(instanceID string) string
	templateVersion func(ctx context.Context, pool string) (string, error)
	exhausted       func(usage lifecycle.UsageClass) []lifecycle.Offering
	region          string     // empty outside AWS
	launchRate      fleet.Rate // zero: launches are not gathered
	atOnce          int        // on how many hosts an operation works at once; 0: as many as the fleet does by default
	ensure          fleet.Ensure
	notices         fleet.Notices // nil: none are received
	sells           func(c fleet.Class, patterns ...[]string) bool
	outside         func(o lifecycle.LaunchOrder) (why string)
	probe           *accountProbe // nil outside AWS
	// clockOffset is how far the store's clock is from that of this machine; nil: they are the same.
	clockOffset func() time.Duration
	// calls counts the calls to AWS of this process; nil: it makes none.
	calls *aws.Calls
	// keepRole writes what a later start needs while IAM does not answer; nil outside AWS.
	keepRole func(ctx context.Context)
	// endHosts ends every host; nil where hosts always outlive the daemon.
	endHosts func(ctx context.Context) error
	close    func() error
}

// newBackends makes them. With readOnly, for commands that only read, they open the store on this machine
// read-only; in AWS the command's role must not allow changes.
func newBackends(ctx context.Context, c *config.Config, in *inputs.Inputs, log hclog.Logger, readOnly bool) (*backends, error) {
	if c.WithoutHosts {
		return newServiceBackends(ctx, c, log, readOnly)
	}
	if c.Backend() == config.BackendAWS {
		b, err := newAWSBackends(ctx, c, in, log)
		if err == nil && !readOnly {
			b.keepRole(ctx)
		}
		return b, err
	}
	return newLocalBackends(c, log, readOnly)
}

// newLocalBackends makes the backends of a fleet on this machine: records in a file, the queue in memory, and hosts as processes. With readOnly they change nothing.
func newLocalBackends(c *config.Config, log hclog.Logger, readOnly bool) (*backends, error) {
	options := processOptions(c, log)
	options.ReadOnly = readOnly
	compute, err := process.New(options)
	if err != nil {
		return nil, err
	}
	file, err := db.Open(c.Store.SQLite.Path, db.Options{Logger: log.Named("store"), ReadOnly: readOnly})
	if err != nil {
		return nil, err
	}
	hints := queue.New(time.Now)
	hints.Logger = log.Named("queue")
	return &backends{
		store: sqlite.New(file).Store, queue: hints, compute: compute,
		atOnce: db.WritesAtOnce, sells: sells(c), endHosts: compute.EndAll, close: file.Close,
	}, nil
}
