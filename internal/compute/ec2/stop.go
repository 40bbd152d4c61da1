package ec2

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// codeWrongState is EC2's answer to an order that does not fit the state of an instance: a start of one that is still stopping, or a stop
// of one that ends.
const codeWrongState = "IncorrectInstanceState"

// Stop begins to stop a machine, which keeps its disks. An instance whose launch template says that a shutdown terminates it is stopped
// nevertheless: that counts for a shutdown from within alone. EC2 does not stop spot instances such as ours. One that cannot hibernate, or not yet, is
// stopped plainly.
func (c *Compute) Stop(ctx context.Context, instanceID string, hibernate bool) error {
	what := "stop machine " + instanceID
	if len(valid([]string{instanceID})) == 0 {
		return nil
	}
	in := &service.StopInstancesInput{InstanceIds: []string{instanceID}}
	if hibernate {
		in.Hibernate = sdk.Bool(true)
	}
	_, err := paced(ctx, c.pace.terminations, what, c.api.StopInstances, in)
	if hibernate && cannotHibernate(err) {
		c.log.Warn("machine not hibernated; it is stopped plainly", logkey.Instance, instanceID, logkey.Error, err)
		return c.Stop(ctx, instanceID, false)
	}
	if errors.Is(err, lifecycle.ErrNotFound) || wrongState(err) {
		return nil
	}
	return err
}

// Start begins to start a stopped machine: a *lifecycle.ShortageError if EC2 has no capacity for it, or the account's quota none.
func (c *Compute) Start(ctx context.Context, instanceID string) error {
	what := "start machine " + instanceID
	if len(valid([]string{instanceID})) == 0 {
		return fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	_, err := paced(ctx, c.pace.terminations, what, c.api.StartInstances, &service.StartInstancesInput{InstanceIds: []string{instanceID}})
	switch {
	case err == nil:
		return nil
	case wrongState(err):
		return &lifecycle.UnavailableError{What: what, Err: err}
	case aws.ClassOf(err) == aws.Capacity, overQuota(err):
		return &lifecycle.ShortageError{Ordered: 1, Reason: aws.Reason(err.Error())}
	}
	return err
}

func wrongState(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == codeWrongState
}

func overQuota(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && quotas[api.ErrorCode()] != ""
}
