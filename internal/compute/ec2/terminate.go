package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"

	service "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

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
