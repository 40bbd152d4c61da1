package dynamo

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// serviceLease is the name in the leases table of a service. It has few rows,
// which one of the replicas writes each minute, as leases are.
func serviceLease(name string) string { return "service/" + name }

// Service reads a service; one that nobody wrote has only its name.
func (s *Store) Service(ctx context.Context, name string) (lifecycle.Service, error) {
	what := "read service " + name
	if err := begin(ctx, what); err != nil {
		return lifecycle.Service{}, err
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: s.table(leases), Key: item{leaseName: text(serviceLease(name))}, ConsistentRead: sdk.Bool(true),
	})
	if err != nil {
		return lifecycle.Service{}, s.failed(what, leases, err)
	}
	if out.Item == nil {
		return lifecycle.Service{Name: name}, nil
	}
	v, err := decode[lifecycle.Service](out.Item)
	if err != nil {
		return lifecycle.Service{}, fmt.Errorf("%s: %w", what, err)
	}
	v.Name = name
	return row.Service(v), nil
}

// UpdateService replaces the service whose stored version is v.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateService(ctx context.Context, v lifecycle.Service) (lifecycle.Service, error) {
	what := "update service " + v.Name
	if err := begin(ctx, what); err != nil {
		return lifecycle.Service{}, err
	}
	holds := isVersion(v.Version)
	if v.Version == 0 {
		holds = isNone(leaseName)
	}
	v = row.Service(v)
	v.Version++
	it, err := encode(v, noExpiry)
	if err != nil {
		return lifecycle.Service{}, fmt.Errorf("%s: %w", what, err)
	}
	it[leaseName] = text(serviceLease(v.Name))
	err = s.put(ctx, what, leases, it, holds)
	switch {
	case errors.Is(err, errCondition):
		return lifecycle.Service{}, lost(what)
	case err != nil:
		return lifecycle.Service{}, err
	}
	return v, nil
}
