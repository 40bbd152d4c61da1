package dynamo

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
	if bytesOf(it) > maxReport && err == nil {
		// It is malformed for everyone, and nothing of it is believed except that a job runs: see lifecycle.Report.Believed.
		p = report{HostKey: key, Busy: p.Busy, Assignment: -1}
	}
	if err == nil {
		s.unsound.Delete(key)
		return store.NormalizeReport(p), true
	}
	if _, logged := s.unsound.LoadOrStore(key, true); !logged {
		s.log.Warn("ignoring a report that cannot be read", logkey.Instance, key, logkey.Error, err)
	}
	return report{}, false
}

// maxReport is how large the item of a report may be, in bytes. An agent's has at most 6 KiB: lifecycle.MaxDetail, and
// some short texts. A job that became its host may write up to 400 KB, with attributes that no report has.
const maxReport = 32 << 10

// bytesOf is the size of an item's names, texts, numbers and binaries, at any depth.
func bytesOf(it item) (n int) {
	for name, value := range it {
		n += len(name) + bytesOfValue(value)
	}
	return n
}

func bytesOfValue(value types.AttributeValue) (n int) {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberSS:
		return len(strings.Join(v.Value, ""))
	case *types.AttributeValueMemberNS:
		return len(strings.Join(v.Value, ""))
	case *types.AttributeValueMemberBS:
		return len(bytes.Join(v.Value, nil))
	case *types.AttributeValueMemberM:
		return bytesOf(v.Value)
	case *types.AttributeValueMemberL:
		for _, member := range v.Value {
			n += 1 + bytesOfValue(member)
		}
	}
	return n
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

// HostView is the store as one host's agent may see it: its own two rows. The
// policy of hosts allows GetItem on the one and UpdateItem on the other.
type HostView struct {
	store   *Store
	hostKey string
}

// ForHost returns the view of the host's agent.
func (s *Store) ForHost(hostKey string) *HostView { return &HostView{store: s, hostKey: hostKey} }

// Record reads the host's record, with the time at which DynamoDB answered:
// ErrNotFound. A projection would save nothing: what is paid for is the row.
func (v *HostView) Record(ctx context.Context, consistent bool) (record, time.Time, error) {
	row, out, err := v.store.get(ctx, store.Instances.Kind, store.Key{v.hostKey}, consistent)
	if out == nil {
		return record{}, time.Time{}, err
	}
	at, _ := awsmiddleware.GetServerTime(out.ResultMetadata)
	if err != nil {
		return record{}, at, err
	}
	return *row.(*record), at, nil
}

// reportAttributes are all that a report may have.
var reportAttributes = attributesOf(reflect.TypeFor[report]())

// PutReport replaces the host's report in one write, and refuses one of another host.
func (v *HostView) PutReport(ctx context.Context, p report) error {
	what := "write report of " + v.hostKey
	if p.HostKey != "" && p.HostKey != v.hostKey {
		return fmt.Errorf("%s: it names host %s", what, p.HostKey)
	}
	it, err := encode(store.NormalizeReport(p), time.Time{})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	u := newUpdate()
	for _, attribute := range reportAttributes {
		if attribute != hostKey {
			u.to(it, attribute)
		}
	}
	_, err = v.store.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: v.store.table(reports), Key: item{hostKey: text(v.hostKey)},
		UpdateExpression: u.expression(), ExpressionAttributeNames: u.names, ExpressionAttributeValues: u.values,
	})
	if err != nil {
		return v.store.failed(what, reports, err)
	}
	return nil
}
