package main

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/store/memory"
	"github.com/remuda-ci/remuda/internal/tracing"
)

// rehearse makes the daemon that serve would make, over backends that keep nothing, and returns what serve would refuse. It calls
// neither the cloud nor GitHub, except that it looks for the credentials that services on ECS are scaled with.
func rehearse(ctx context.Context, c *config.Config, in *inputs.Inputs) error {
	log := hclog.NewNullLogger()
	b, err := idleBackends(ctx, c, in, log)
	if err != nil {
		return err
	}
	d, err := assemble(ctx, c, in, b, "rehearsal", log)
	if err != nil {
		return err
	}
	return d.close()
}

// idleBackends have a store in memory and no hosts. What they know of instance types is real.
func idleBackends(ctx context.Context, c *config.Config, in *inputs.Inputs, log hclog.Logger) (*backends, error) {
	b := &backends{
		store: memory.New(time.Now).Store, queue: noHosts{}, compute: noHosts{}, hostKey: func(id string) string { return id },
		sells: sells(c), close: func() error { return nil },
	}
	if c.Backend() == config.BackendLocal {
		if err := limits(c).Check(); err != nil {
			return nil, &configError{fmt.Errorf("compute.process: %w", err)}
		}
		return b, nil
	}
	cfg, err := loadAWS(ctx, c, nil, nil)
	if err != nil || c.WithoutHosts {
		return b, err
	}
	compute, err := ec2.New(nil, newAWSOptions(c, in, cfg.Region, "", log).compute)
	if err != nil {
		return nil, &configError{err}
	}
	b.sells = sellsOf(compute)
	return b, nil
}

// loadAWS sets up the SDK for a fleet in AWS. It makes no call.
func loadAWS(ctx context.Context, c *config.Config, clock *aws.Clock, calls *aws.Calls) (sdk.Config, error) {
	cfg, err := aws.Load(ctx, aws.Options{Region: c.AWS.Region, Program: "remuda-controld", Clock: clock, Calls: calls})
	tracing.AWS(&cfg)
	if err != nil {
		return cfg, &configError{fmt.Errorf("aws: %w", err)}
	}
	return cfg, nil
}
