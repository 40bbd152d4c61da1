package awsfaults_test

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	rows "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	ec2api "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// seen is what was last read of a service past the proxy.
type seen[T any] struct {
	calls int // through the proxy, until then
	all   []T
}

// of reads again if a call has come that may have changed it: hosts and checks look
// far more often than anything changes, and there are hundreds of lives.
func (s *seen[T]) of(w *world, service string, read func() []T) []T {
	calls := w.proxy.Calls()
	if s.calls == 0 || slices.ContainsFunc(calls[s.calls:], func(c awstest.Call) bool { return c.Service == service && changes(c.Operation) }) {
		s.all = read()
	}
	s.calls = len(calls)
	return s.all
}

// changes reports whether an operation may change something: whatever does not say
// that it only reads.
func changes(operation string) bool {
	return !slices.ContainsFunc([]string{"BatchGet", "Describe", "Get", "List", "Query", "Scan"}, func(verb string) bool {
		return strings.HasPrefix(operation, verb)
	})
}

// records are those of every state, as they are in DynamoDB.
func (w *world) records() []lifecycle.Record {
	w.t.Helper()
	return w.seenRecords.of(w, "dynamodb", func() (all []lifecycle.Record) {
		ctx := context.Background()
		var keys []string
		pages := dynamodb.NewScanPaginator(w.tables, &dynamodb.ScanInput{
			TableName: sdk.String("remuda-instances"), ProjectionExpression: sdk.String("hostKey"), ConsistentRead: sdk.Bool(true),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			check(w.t, err)
			for _, item := range page.Items {
				keys = append(keys, item["hostKey"].(*rows.AttributeValueMemberS).Value)
			}
		}
		all, err := w.truth.Instances(ctx, keys)
		check(w.t, err)
		slices.SortFunc(all, func(a, b lifecycle.Record) int { return strings.Compare(a.HostKey, b.HostKey) })
		return all
	})
}

// instances are those with our tag, as they are in moto, gone ones too.
func (w *world) instances() []types.Instance {
	w.t.Helper()
	return w.seenInstances.of(w, "ec2", func() (all []types.Instance) {
		pages := ec2api.NewDescribeInstancesPaginator(w.cloud, &ec2api.DescribeInstancesInput{
			Filters: []types.Filter{{Name: sdk.String("tag:" + ec2.TagFleet), Values: []string{"remuda"}}},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(context.Background())
			check(w.t, err)
			for _, r := range page.Reservations {
				all = append(all, r.Instances...)
			}
		}
		return all
	})
}
