package dynamo

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/token"
)

type (
	report     = lifecycle.Report
	reportPage = lifecycle.Page[lifecycle.Report]
)

const reportsListing = "reports"

// Reports reads the reports of the hosts that have one, by host key.
func (s *Store) Reports(ctx context.Context, hostKeys []string) (map[string]report, error) {
	keys := make([]item, len(hostKeys))
	for i, key := range hostKeys {
		keys[i] = item{hostKey: text(key)}
	}
	items, err := s.batchGet(ctx, "read reports", reports, schema{hash: hostKey}.distinct(keys), false)
	if err != nil {
		return nil, err
	}
	found := make(map[string]report, len(items))
	for _, it := range items {
		if p, ok := s.soundReport(it); ok {
			found[p.HostKey] = p
		}
	}
	return found, nil
}

// AllReports lists every report, in the order in which DynamoDB has them, which
// is none: it is the one scan there is.
func (s *Store) AllReports(ctx context.Context, of lifecycle.PageOf) (reportPage, error) {
	const what = "list reports"
	after, err := token.Parse(reportsListing, of.After, 1)
	if err != nil {
		return reportPage{}, err
	}
	input := &dynamodb.ScanInput{TableName: s.table(reports), Limit: sdk.Int32(int32(sizeOf(of)))}
	if after != nil {
		if after[0] == "" {
			return reportPage{}, token.Bad(reportsListing)
		}
		input.ExclusiveStartKey = item{hostKey: text(after[0])}
	}
	out, err := s.client.Scan(ctx, input)
	if err != nil {
		return reportPage{}, s.failed(what, reports, err)
	}
	var page reportPage
	for _, it := range out.Items {
		if p, ok := s.soundReport(it); ok {
			page.Items = append(page.Items, p)
		}
	}
	if out.LastEvaluatedKey != nil {
		page.Next = token.New(reportsListing, textOf(out.LastEvaluatedKey, hostKey))
	}
	return page, nil
}

// soundReport is the report of an item. What an agent wrote is untrusted: an item that is no report counts as
// none. It is logged once until it is a report again, since reports are read several times a second.
func (s *Store) soundReport(it item) (report, bool) {
	key := textOf(it, hostKey)
	p, err := decode[report](it)
	if err == nil {
		s.unsound.Delete(key)
		return store.NormalizeReport(p), true
	}
	if _, logged := s.unsound.LoadOrStore(key, true); !logged {
		s.log.Warn("ignoring a report that cannot be read", logkey.Instance, key, logkey.Error, err)
	}
	return report{}, false
}

// DeleteReport removes a report; none is no error.
func (s *Store) DeleteReport(ctx context.Context, key string) error {
	what := "delete report of " + key
	if key == "" { // which no key can be
		return nil
	}
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: s.table(reports), Key: item{hostKey: text(key)}})
	if err != nil {
		return s.failed(what, reports, err)
	}
	return nil
}
