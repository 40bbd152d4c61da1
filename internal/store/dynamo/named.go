package dynamo

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The leases table holds, beside the leases, what there are few rows of by name:
// each of a version, and written under the one before.

// named reads such a row, consistently; where there is none it is none.
func named[T any](ctx context.Context, s *Store, what, name string, none T) (T, error) {
	v, err := readNamed[T](ctx, s, what, name)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return none, nil
	}
	return v, err
}

// readNamed reads such a row, consistently: ErrNotFound where there is none.
func readNamed[T any](ctx context.Context, s *Store, what, name string) (T, error) {
	var zero T
	if err := begin(ctx, what); err != nil {
		return zero, err
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: s.table(leases), Key: item{leaseName: text(name)}, ConsistentRead: sdk.Bool(true),
	})
	if err != nil {
		return zero, s.failed(what, leases, err)
	}
	if out.Item == nil {
		return zero, notFound(what)
	}
	v, err := decode[T](out.Item)
	if err != nil {
		return zero, fmt.Errorf("%s: %w", what, err)
	}
	return v, nil
}

// putNamed writes such a row, whose stored version must be the one before version
// (1: there is none): else ErrLost.
func (s *Store) putNamed(ctx context.Context, what, name string, version int64, v any) error {
	if err := begin(ctx, what); err != nil {
		return err
	}
	holds := isVersion(version - 1)
	if version == 1 {
		holds = isNone(leaseName)
	}
	it, err := encode(v, noExpiry)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	it[leaseName] = text(name)
	if err = s.put(ctx, what, leases, it, holds); errors.Is(err, errCondition) {
		return lost(what)
	}
	return err
}
