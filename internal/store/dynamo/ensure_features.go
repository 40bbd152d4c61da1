package dynamo

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// activeWithin is how long a table or index may take to be made. Tables
	// take about 10 s, indexes a few minutes, and longer the more rows there
	// are: what is not done by then is reported, and goes on by itself.
	activeWithin = 5 * time.Minute
	// firstLook is doubled with every look up to longestLook, which is short
	// beside the 10 s that a table takes.
	firstLook, longestLook = 100 * time.Millisecond, 2 * time.Second
)

// wait looks until it is done.
func (e *ensurer) wait(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, activeWithin)
	defer cancel()
	what += " " + *e.name()
	for pause := firstLook; ; pause = min(2*pause, longestLook) {
		ok, err := done(ctx)
		if err != nil || ok {
			return err
		}
		if err := sleep(ctx, what, pause); err != nil {
			return err
		}
	}
}

// active waits until the table and its indexes may be used and changed.
func (e *ensurer) active(ctx context.Context) (found *types.TableDescription, err error) {
	err = e.wait(ctx, "wait for table", func(ctx context.Context) (bool, error) {
		if found, err = e.describe(ctx); err != nil || found == nil {
			return false, err
		}
		ok := found.TableStatus == types.TableStatusActive
		for _, x := range found.GlobalSecondaryIndexes {
			ok = ok && x.IndexStatus == types.IndexStatusActive
		}
		return ok, nil
	})
	return found, err
}

// expiry has DynamoDB remove expired rows (TTL).
func (e *ensurer) expiry(ctx context.Context) error {
	if !e.schema.expires {
		return nil
	}
	on, err := e.expires(ctx)
	if err != nil || on {
		return err
	}
	if !e.dry {
		_, err := e.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               e.name(),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: sdk.String(expiresAt), Enabled: sdk.Bool(true)},
		})
		if err != nil {
			if on, _ := e.expires(ctx); on { // another replica was at it
				return nil
			}
			return e.failed("turn on the expiry of table", err)
		}
	}
	e.changed(lifecycle.ResourceUpdated, "expired rows were not removed; they are (TTL)")
	return nil
}

// expires reports whether expired rows are removed.
func (e *ensurer) expires(ctx context.Context) (bool, error) {
	out, err := e.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: e.name()})
	if err != nil {
		return false, e.failed("describe the expiry of table", err)
	}
	found := out.TimeToLiveDescription
	switch found.TimeToLiveStatus {
	case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling:
		if name := sdk.ToString(found.AttributeName); name != expiresAt {
			return false, fmt.Errorf("table %s expires its rows by attribute %s: %w: turn its TTL off, and an hour later run Refresh",
				*e.name(), name, lifecycle.ErrRefused)
		}
		return true, nil
	}
	return false, nil
}

// backups turns on point-in-time recovery.
func (e *ensurer) backups(ctx context.Context) error {
	if !e.schema.backup {
		return nil
	}
	out, err := e.client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: e.name()})
	if aws.Code(err) == "UnknownOperationException" { // an emulator
		e.log.Warn("this endpoint knows no backups", logkey.Table, *e.name())
		return nil
	}
	if err != nil {
		return e.failed("describe the backups of table", err)
	}
	if d := out.ContinuousBackupsDescription; d != nil && d.PointInTimeRecoveryDescription != nil &&
		d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled {
		return nil
	}
	if !e.dry {
		if err := e.turnOnBackups(ctx); err != nil {
			return err
		}
	}
	e.changed(lifecycle.ResourceUpdated, "there was no point-in-time recovery; it is on")
	return nil
}

func (e *ensurer) turnOnBackups(ctx context.Context) error {
	return e.wait(ctx, "wait for backups of table", func(ctx context.Context) (bool, error) {
		_, err := e.client.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
			TableName:                        e.name(),
			PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: sdk.Bool(true)},
		})
		switch {
		case err == nil:
			return true, nil
		case aws.Code(err) == "ContinuousBackupsUnavailableException": // while a new table gets its backups
			return false, nil
		}
		return false, e.failed("turn on point-in-time recovery of table", err)
	})
}
