package sqs

import (
	"context"
	"errors"
	"slices"
	"strconv"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/hint"
	"github.com/remuda-ci/remuda/internal/retry"
)

// batch is a call for several entries at once, which may fail as a whole or for some of them.
type batch struct {
	what      string // the verb, such as "send to"
	operation string
	queue     string // its full name
	entries   int
	// call makes it for the entries of these numbers.
	call func(url string, entries []int) ([]types.BatchResultErrorEntry, error)
	// forgives reports whether the failure of an entry counts as a success; nil: it never does.
	forgives func(error) bool
}

// inBatches does b in calls of at most hint.MaxBatch entries. One that fails
// does not keep the others from being made.
func (q *Queue) inBatches(ctx context.Context, b batch) error {
	all := make([]int, b.entries)
	for i := range all {
		all[i] = i
	}
	var errs []error
	for some := range slices.Chunk(all, hint.MaxBatch) {
		errs = append(errs, q.do(ctx, b, some))
	}
	return errors.Join(errs...)
}

// do makes one call, and again for the entries that failed and may go well another time: as often, and after
// the same waits, as the SDK repeats a call that failed as a whole.
func (q *Queue) do(ctx context.Context, b batch, entries []int) error {
	retryer := q.client.Options().Retryer
	var refused error
	for try := 1; ; try++ {
		var failures []types.BatchResultErrorEntry
		err := q.all.At(ctx, b.what, b.queue, func(url string) (err error) {
			failures, err = b.call(url, entries)
			return err
		})
		if err != nil {
			return err
		}
		left, worst, passing := b.sort(failures)
		refused = errors.Join(refused, q.all.Failed(b.what, b.queue, worst))
		if entries = left; len(entries) == 0 {
			return refused
		}
		if try >= retryer.MaxAttempts() {
			return errors.Join(refused, q.all.Failed(b.what, b.queue, passing))
		}
		if err := wait(ctx, retryer, try, passing); err != nil {
			return errors.Join(refused, &lifecycle.UnavailableError{What: b.what + " queue " + b.queue, Err: err})
		}
	}
}

// sort tells failures that may pass, with the numbers of their entries, from
// the one that will not, the first for all.
func (b batch) sort(failures []types.BatchResultErrorEntry) (left []int, worst, passing error) {
	for _, f := range failures {
		entry, err := strconv.Atoi(sdk.ToString(f.Id))
		failure := b.failure(f)
		switch class := aws.ClassOf(failure); {
		case err != nil || b.forgives != nil && b.forgives(failure):
		case class == aws.Retry || class == aws.Throttled:
			left, passing = append(left, entry), failure
		case worst == nil:
			worst = failure
		}
	}
	return left, worst, passing
}

// failure is why the call failed for one entry, as if it had been made for that alone.
func (b batch) failure(e types.BatchResultErrorEntry) error {
	fault := smithy.FaultServer
	if e.SenderFault {
		fault = smithy.FaultClient
	}
	return &smithy.OperationError{ServiceID: "SQS", OperationName: b.operation, Err: &smithy.GenericAPIError{
		Code: sdk.ToString(e.Code), Message: sdk.ToString(e.Message), Fault: fault,
	}}
}

// id of an entry is its number.
func id(entry int) *string { return sdk.String(strconv.Itoa(entry)) }

// wait lets pass what the SDK would between two tries.
func wait(ctx context.Context, retryer sdk.Retryer, try int, err error) error {
	d, err := retryer.RetryDelay(try, err)
	if err != nil {
		return err
	}
	if retry.Sleep(ctx, d) != nil {
		return ctx.Err()
	}
	return nil
}
