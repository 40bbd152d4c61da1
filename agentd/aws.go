package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	metadata "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/imds"
	"github.com/remuda-ci/remuda/internal/host/notify"
	"github.com/remuda-ci/remuda/internal/host/power"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/retry"
)

// program is the name of agentd in the user agent of AWS calls.
const program = "remuda-agentd"

// findAWS finds a host whose rows are in DynamoDB: an EC2 instance, unless the configuration names the host.
func findAWS(ctx context.Context, c config, fail func(error)) (place, error) {
	if c.InstanceID == "" {
		return findInstance(ctx, c, fail)
	}
	log := c.logger(c.InstanceID)
	config, err := load(ctx, c.Store.DynamoDB.Region)
	if err != nil {
		return place{}, err
	}
	known := func(context.Context) (string, error) { return c.HostKey, nil }
	return place{instanceID: c.InstanceID, hostKey: c.HostKey, store: openDynamo(config, c, log, known, fail)}, nil
}

// findInstance asks the EC2 instance which one it is.
func findInstance(ctx context.Context, c config, fail func(error)) (place, error) {
	client, err := aws.Metadata(nil)
	if err != nil {
		return place{}, &configError{err}
	}
	id, err := identify(ctx, client, c.BootTimeout, c.logger(""))
	if err != nil {
		return place{}, err
	}
	log := c.logger(id.InstanceID)
	log.Info("on EC2", logkey.Region, id.Region, logkey.Zone, id.Zone, logkey.Type, id.Type, logkey.Lifecycle, id.Lifecycle,
		logkey.Pool, cmp.Or(c.Host.Pool, id.Pool))
	if c.Systemd == nil && !c.Host.JobsReadMetadata {
		log.Warn("jobs run as agentd's own user and can read the instance metadata: serve only repositories that you trust")
	}
	// Calls about the machine itself go to its region, those about its rows to the region of the tables.
	here, err := load(ctx, id.Region)
	if err != nil {
		return place{}, err
	}
	tables := here.Copy()
	tables.Region = cmp.Or(c.Store.DynamoDB.Region, id.Region)
	whoami := sts.NewFromConfig(here)
	learn := func(ctx context.Context) (string, error) { return imds.HostKey(ctx, whoami, id) }
	p := place{
		instanceID: id.InstanceID, hostKey: id.InstanceID,
		store: openDynamo(tables, c, log, learn, fail),
		power: power.EC2{Client: ec2.NewFromConfig(here), InstanceID: id.InstanceID, Command: c.powerOff(), Logger: log.Named("power")},
	}
	if id.Lifecycle == imds.LifecycleSpot {
		log := log.Named("imds")
		p.watches = append(p.watches,
			func(ctx context.Context, h *host.Host) {
				imds.Watch(ctx, client, imds.NoticeInterval, log, h.Interrupted)
			},
			func(ctx context.Context, h *host.Host) {
				imds.WatchRebalance(ctx, client, imds.NoticeInterval, log, h.Rebalance)
			})
	}
	return p, nil
}

// load sets up the SDK. Only other settings can fix a failure here.
func load(ctx context.Context, region string) (sdk.Config, error) {
	c, err := aws.Load(ctx, aws.Options{Region: region, Program: program})
	if err != nil {
		return sdk.Config{}, &configError{err}
	}
	return c, nil
}

// Bounds of the pauses between calls of instance metadata that does not answer. It is
// hardly ever unavailable for long, and the host waits for it.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 10 * time.Second
)

// identify asks instance metadata until it answers, for as long as a host may take to boot.
func identify(ctx context.Context, client *metadata.Client, limit time.Duration, log hclog.Logger) (imds.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	alive := notify.Stepped(log)
	pauses := retry.Backoff{Base: firstPause, Max: longestPause}
	for failures := 1; ; failures++ {
		alive(time.Now())
		id, err := imds.Identify(ctx, client)
		if err == nil {
			return id, nil
		}
		if failures == 1 {
			log.Warn("instance metadata does not identify this machine, asking again; if it is not in EC2, write instance_id", logkey.Error, err)
		}
		if pauses.Wait(ctx, failures) != nil {
			return imds.Identity{}, fmt.Errorf("identify this instance: %w", err)
		}
	}
}

// metadataEndpoint is the SDK's environment variable for a stand-in of the metadata service.
const metadataEndpoint = "AWS_EC2_METADATA_SERVICE_ENDPOINT"

// powerOff returns the command that powers off the machine that agentd runs on. With a
// stand-in of the metadata service the machine is not that instance, and is powered off
// only if the configuration has a command.
func (c config) powerOff() []string {
	if len(c.PowerOff) == 0 && os.Getenv(metadataEndpoint) == "" {
		return []string{"systemctl", "poweroff"}
	}
	return c.PowerOff
}

// place is the environment that agentd runs in: a local host with a database file, or an EC2 instance.
type place struct {
	instanceID string
	// hostKey is the key of the host's rows. The store fills it in where it has to be asked for first.
	hostKey string
	store   *lazyStore
	// power powers off the machine; nil if the host ends with agentd.
	power powerSwitch
	// watches report notices about the machine's end to the host, until ctx is done.
	watches []func(ctx context.Context, h *host.Host)
}

// powerSwitch ends a machine, and makes sure that it ends.
type powerSwitch interface {
	host.Power
	// Await waits for the end that Off has begun. An error means that it does not come.
	Await(ctx context.Context) error
}

// findPlace finds out where agentd runs. It calls fail if it turns out later that agentd
// can never work there.
func findPlace(ctx context.Context, c config, fail func(error)) (place, error) {
	if c.Store.DynamoDB != nil {
		return findAWS(ctx, c, fail)
	}
	return place{instanceID: c.InstanceID, hostKey: c.HostKey, store: openSQLite(c.Store.SQLite.Path, c.HostKey)}, nil
}
