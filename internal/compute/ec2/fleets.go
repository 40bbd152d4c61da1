package ec2

import (
	"context"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
)

// Fleets are the prefixes of the fleets that have launch templates in this account and region, in order. This one is among them once it was
// refreshed.
func (c *Compute) Fleets(ctx context.Context) ([]string, error) {
	const what = "look for fleets"
	var prefixes []string
	pages := service.NewDescribeLaunchTemplatesPaginator(c.api, &service.DescribeLaunchTemplatesInput{
		Filters: []types.Filter{filter("tag-key", TagFleet)}, MaxResults: sdk.Int32(200),
	})
	for pages.HasMorePages() {
		if err := await(ctx, c.pace.reads, 1, what); err != nil {
			return nil, err
		}
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, aws.Wrap(what, err)
		}
		for _, t := range page.LaunchTemplates {
			for _, tag := range t.Tags {
				if sdk.ToString(tag.Key) == TagFleet {
					prefixes = append(prefixes, sdk.ToString(tag.Value))
				}
			}
		}
	}
	slices.Sort(prefixes)
	return slices.Compact(prefixes), nil
}
