package dynamo

import (
	"context"
	"maps"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// tag gives a table that was there the tags that it lacks, and leaves its others. A Refresh within seconds of another may see the tags of
// before, since DynamoDB lists them late, and sets the same ones again.
func (e *ensurer) tag(ctx context.Context, table *types.TableDescription) error {
	found, err := e.tagsOf(ctx, table)
	if aws.Code(err) == "UnknownOperationException" { // an emulator
		e.log.Warn("this endpoint knows no tags", logkey.Table, *e.name())
		return nil
	}
	if err != nil {
		return e.failed("read the tags of table", err)
	}
	lacking := aws.LackingTags(found, e.tags)
	if len(lacking) == 0 {
		return nil
	}
	if !e.dry {
		if _, err := e.client.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: table.TableArn, Tags: tagList(lacking)}); err != nil {
			return e.failed("tag table", err)
		}
	}
	e.changed(resources.Updated, aws.WhyTagged(lacking))
	return nil
}

func (e *ensurer) tagsOf(ctx context.Context, table *types.TableDescription) (map[string]string, error) {
	found := map[string]string{}
	input := &dynamodb.ListTagsOfResourceInput{ResourceArn: table.TableArn}
	for {
		page, err := e.client.ListTagsOfResource(ctx, input)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tags {
			found[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
		}
		if input.NextToken = page.NextToken; input.NextToken == nil {
			return found, nil
		}
	}
}

func tagList(tags map[string]string) []types.Tag {
	var all []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, types.Tag{Key: &key, Value: sdk.String(tags[key])})
	}
	return all
}
