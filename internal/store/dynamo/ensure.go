package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Ensure makes the tables what they should be and returns what it created or changed; a dry run changes
// nothing and returns what it would change. It deletes nothing. A table or index of our name that was made
// with other keys is ErrRefused. A table that fails does not keep it from the others.
func (s *Store) Ensure(ctx context.Context, dryRun bool) ([]resources.Resource, error) {
	ensuring := make([]ensurer, len(schemas))
	errs := make([]error, len(schemas))
	var wg sync.WaitGroup
	for i, t := range schemas {
		ensuring[i] = ensurer{Store: s, schema: t, dry: dryRun}
		wg.Go(func() { errs[i] = ensuring[i].table(ctx) })
	}
	wg.Wait()
	var changes []resources.Resource
	for _, e := range ensuring {
		changes = append(changes, e.changes...)
	}
	return changes, errors.Join(errs...)
}

// ensurer makes one table what it should be.
type ensurer struct {
	*Store
	schema  schema
	dry     bool
	changes []resources.Resource
}

func (e *ensurer) name() *string { return e.Store.table(e.schema.name) }

func (e *ensurer) changed(change resources.Change, detail string) {
	e.changes = append(e.changes, resources.Resource{Kind: "table", Name: *e.name(), Change: change, Detail: detail})
}

func (e *ensurer) changedIndex(name, detail string) {
	full := *e.name() + "/" + name
	e.changes = append(e.changes, resources.Resource{Kind: "index", Name: full, Change: resources.Created, Detail: detail})
}

func (e *ensurer) failed(what string, err error) error { return aws.Wrap(what+" "+*e.name(), err) }

func (e *ensurer) table(ctx context.Context) error {
	found, err := e.describe(ctx)
	if err != nil {
		return err
	}
	existed := found != nil
	if !existed {
		e.changed(resources.Created, "it was missing; on-demand"+e.features())
		if e.dry {
			return nil
		}
		if err := e.create(ctx); err != nil {
			e.changes = nil
			return err
		}
	}
	if !e.dry {
		if found, err = e.active(ctx); err != nil {
			return err
		}
	}
	if err := e.keys(found); err != nil {
		return err
	}
	// What was created with the table is not reported a second time.
	silent := len(e.changes)
	err = errors.Join(e.billing(ctx, found), e.indexes(ctx, found), e.protection(ctx, found), e.expiry(ctx), e.backups(ctx))
	if silent > 0 {
		e.changes = e.changes[:silent]
	}
	if existed { // a new table has its tags, which DynamoDB lists seconds later
		err = errors.Join(err, e.tag(ctx, found))
	}
	return err
}

// features are what a new table has, for people.
func (e *ensurer) features() string {
	with := ", deletion protection"
	for _, x := range e.schema.indexes {
		with += ", index " + x.name
	}
	if e.schema.expires {
		with += ", expiry"
	}
	if e.schema.backup {
		with += ", point-in-time recovery"
	}
	return with
}

// describe returns the table; nil if there is none.
func (e *ensurer) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := e.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: e.name()})
	switch {
	case err == nil:
		return out.Table, nil
	case aws.ClassOf(err) == aws.Gone:
		return nil, nil
	}
	return nil, e.failed("describe table", err)
}

func (e *ensurer) create(ctx context.Context) error {
	input := &dynamodb.CreateTableInput{
		TableName: e.name(), BillingMode: types.BillingModePayPerRequest, DeletionProtectionEnabled: sdk.Bool(true),
		KeySchema: keySchema(e.schema.hash, e.schema.sort), AttributeDefinitions: attributes(e.schema),
		Tags: tagList(e.tags),
	}
	for _, x := range e.schema.indexes {
		input.GlobalSecondaryIndexes = append(input.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &x.name, KeySchema: keySchema(x.hash, x.sort), Projection: projection(x),
		})
	}
	return e.wait(ctx, "wait to create table", func(ctx context.Context) (bool, error) {
		_, err := e.client.CreateTable(ctx, input)
		switch {
		case err == nil, aws.ClassOf(err) == aws.Exists: // another replica may be at it
			return true, nil
		case aws.Code(err) == codeMakesOthers:
			return false, nil
		}
		return false, e.failed("create table", err)
	})
}

// codeMakesOthers says that so many other tables or indexes are being made that this one has to wait. How many an account may make at
// once differs: the API reference of CreateTable says one in one place, and up to 250 in another.
const codeMakesOthers = "LimitExceededException"

// keys refuses a table that is not ours.
func (e *ensurer) keys(found *types.TableDescription) error {
	if !sameKeys(found.KeySchema, found.AttributeDefinitions, e.schema.hash, e.schema.sort) {
		return fmt.Errorf("table %s has other keys than ours: %w: choose another prefix, or delete the table if it is not needed",
			*e.name(), lifecycle.ErrRefused)
	}
	return nil
}

// protection has DynamoDB refuse to delete the table: without its records a fleet does not know its hosts. The table
// is described once more, since DynamoDB Local forgets its protection with other updates, which is not reported.
func (e *ensurer) protection(ctx context.Context, before *types.TableDescription) error {
	now, err := e.describe(ctx)
	if err != nil || now == nil || unprotectable(now) || *now.DeletionProtectionEnabled {
		return err
	}
	if !e.dry {
		_, err := e.client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: e.name(), DeletionProtectionEnabled: sdk.Bool(true)})
		if err != nil {
			return e.failed("protect table", err)
		}
		if _, err := e.active(ctx); err != nil {
			return err
		}
	}
	if unprotectable(before) || !*before.DeletionProtectionEnabled {
		e.changed(resources.Updated, "it could be deleted by mistake; it has deletion protection")
	}
	return nil
}

// unprotectable: the endpoint is an emulator that knows no deletion protection.
func unprotectable(t *types.TableDescription) bool { return t.DeletionProtectionEnabled == nil }

func (e *ensurer) billing(ctx context.Context, found *types.TableDescription) error {
	if b := found.BillingModeSummary; b != nil && b.BillingMode == types.BillingModePayPerRequest {
		return nil
	}
	e.changed(resources.Updated, "it had provisioned capacity; it is on-demand")
	if e.dry {
		return nil
	}
	_, err := e.client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: e.name(), BillingMode: types.BillingModePayPerRequest})
	if err != nil {
		e.changes = e.changes[:len(e.changes)-1]
		return e.failed("update table", err)
	}
	_, err = e.active(ctx)
	return err
}

// attributes are the definitions of a table's keys.
func attributes(t schema) []types.AttributeDefinition {
	var all []types.AttributeDefinition
	for _, name := range t.keys() {
		all = append(all, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
	}
	return all
}

func keySchema(hash, sort string) []types.KeySchemaElement {
	keys := []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}}
	if sort != "" {
		keys = append(keys, types.KeySchemaElement{AttributeName: &sort, KeyType: types.KeyTypeRange})
	}
	return keys
}

func projection(x indexSchema) *types.Projection {
	if x.whole {
		return &types.Projection{ProjectionType: types.ProjectionTypeAll}
	}
	return &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
}

// sameKeys reports whether keys are those two, both of them strings.
func sameKeys(keys []types.KeySchemaElement, attributes []types.AttributeDefinition, hash, sort string) bool {
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range attributes {
		kinds[*a.AttributeName] = a.AttributeType
	}
	var found [2]string
	for _, k := range keys {
		at := 0
		if k.KeyType == types.KeyTypeRange {
			at = 1
		}
		if found[at] = *k.AttributeName; kinds[found[at]] != types.ScalarAttributeTypeS {
			return false
		}
	}
	return found == [2]string{hash, sort}
}

// indexes adds those that are missing, one after the other, since DynamoDB
// builds one at a time. Indexes that are not ours are left alone.
func (e *ensurer) indexes(ctx context.Context, found *types.TableDescription) error {
	var errs []error
	for _, x := range e.schema.indexes {
		if _, ok := indexOf(found, x.name); ok {
			errs = append(errs, e.checkIndex(x, found))
			continue
		}
		errs = append(errs, e.addIndex(ctx, x))
	}
	return errors.Join(errs...)
}

func indexOf(t *types.TableDescription, name string) (types.GlobalSecondaryIndexDescription, bool) {
	i := slices.IndexFunc(t.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool {
		return *g.IndexName == name
	})
	if i < 0 {
		return types.GlobalSecondaryIndexDescription{}, false
	}
	return t.GlobalSecondaryIndexes[i], true
}

func (e *ensurer) checkIndex(x indexSchema, table *types.TableDescription) error {
	found, _ := indexOf(table, x.name)
	if sameKeys(found.KeySchema, table.AttributeDefinitions, x.hash, x.sort) && found.Projection != nil &&
		found.Projection.ProjectionType == projection(x).ProjectionType {
		return nil
	}
	return fmt.Errorf("index %s of table %s has other keys or attributes than ours: %w: delete it, and run Refresh",
		x.name, *e.name(), lifecycle.ErrRefused)
}

func (e *ensurer) addIndex(ctx context.Context, x indexSchema) error {
	if e.dry {
		e.changedIndex(x.name, "it was missing")
		return nil
	}
	err := e.orderIndex(ctx, x)
	if err == nil {
		e.changedIndex(x.name, "it was missing")
		_, err = e.active(ctx)
		return err
	}
	// Another replica may have been at it.
	if table, again := e.active(ctx); again == nil {
		if _, ok := indexOf(table, x.name); ok {
			return e.checkIndex(x, table)
		}
	}
	return err
}

// orderIndex has DynamoDB begin an index.
func (e *ensurer) orderIndex(ctx context.Context, x indexSchema) error {
	keys := schema{hash: e.schema.hash, sort: e.schema.sort, indexes: []indexSchema{x}}
	input := &dynamodb.UpdateTableInput{
		TableName: e.name(), AttributeDefinitions: attributes(keys),
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: &x.name, KeySchema: keySchema(x.hash, x.sort), Projection: projection(x),
		}}},
	}
	return e.wait(ctx, "wait to add index "+x.name+" to table", func(ctx context.Context) (bool, error) {
		_, err := e.client.UpdateTable(ctx, input)
		switch {
		case err == nil:
			return true, nil
		case aws.Code(err) == codeMakesOthers:
			return false, nil
		}
		return false, e.failed("add index "+x.name+" to table", err)
	})
}

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
	e.changed(resources.Updated, "expired rows were not removed; they are (TTL)")
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
	e.changed(resources.Updated, "there was no point-in-time recovery; it is on")
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
