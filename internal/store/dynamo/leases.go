package dynamo

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// leaseRow is a lease as it is stored.
type leaseRow struct {
	Name    string `json:"name"`
	Holder  string `json:"holder"`
	Version int64  `json:"version"`
}

// Lease reads a lease, consistently: ErrNotFound if it was never taken.
func (s *Store) Lease(ctx context.Context, name string) (lifecycle.Lease, error) {
	what := "read lease " + name
	if err := begin(ctx, what); err != nil {
		return lifecycle.Lease{}, err
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: s.table(leases), Key: item{leaseName: text(name)}, ConsistentRead: sdk.Bool(true),
	})
	if err != nil {
		return lifecycle.Lease{}, s.failed(what, leases, err)
	}
	if out.Item == nil {
		return lifecycle.Lease{}, notFound(what)
	}
	l, err := decode[leaseRow](out.Item)
	if err != nil {
		return lifecycle.Lease{}, fmt.Errorf("%s: %w", what, err)
	}
	return lifecycle.Lease(l), nil
}

// TakeLease writes the lease if its stored version is still l.Version (0: it
// does not exist) and returns it as stored: else ErrConflict.
func (s *Store) TakeLease(ctx context.Context, l lifecycle.Lease) (lifecycle.Lease, error) {
	what := "take lease " + l.Name
	if err := begin(ctx, what); err != nil {
		return lifecycle.Lease{}, err
	}
	holds := isVersion(l.Version)
	if l.Version == 0 {
		holds = isNone(leaseName)
	}
	l.Version++
	it, err := encode(leaseRow(l), noExpiry)
	if err != nil {
		return lifecycle.Lease{}, fmt.Errorf("%s: %w", what, err)
	}
	if err = s.put(ctx, what, leases, it, holds); errors.Is(err, errCondition) {
		err = lost(what)
	}
	if err != nil {
		return lifecycle.Lease{}, err
	}
	return l, nil
}
