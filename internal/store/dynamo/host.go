package dynamo

import (
	"context"
	"fmt"
	"reflect"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/store"
)

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
