package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

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
	keys := schema{hash: e.schema.hash, sort: e.schema.sort, indexes: []indexSchema{x}}
	_, err := e.client.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: e.name(), AttributeDefinitions: attributes(keys),
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: &x.name, KeySchema: keySchema(x.hash, x.sort), Projection: projection(x),
		}}},
	})
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
	return e.failed("add index "+x.name+" to table", err)
}
