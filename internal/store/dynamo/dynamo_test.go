package dynamo_test

import (
	"context"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/store/storetest"
)

var (
	_ workqueue.Store = (*dynamo.Store)(nil)
	_ agent.Store     = (*dynamo.HostView)(nil)
)

// TestStore has the agents use a client of their own, as they do.
func TestStore(t *testing.T) {
	t.Parallel()
	d := newSuiteDatabase(t)
	storetest.Run(t, storetest.ListsInGoroutines, func(t *testing.T, now func() time.Time) storetest.Database {
		o := d.empty(t)
		o.Now = now
		s, agents := dynamo.New(d.stores, o), dynamo.New(d.agents, o)
		return storetest.Database{Store: s.Store, ForHost: func(key string) storetest.HostView { return suiteView{t, agents.ForHost(key)} }}
	})
}

// suiteView checks the time of an answer against the real clock, which is that
// of the emulator, and says nothing of it to the suite, which has its own.
type suiteView struct {
	t *testing.T
	*dynamo.HostView
}

func (v suiteView) Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error) {
	r, at, err := v.HostView.Record(ctx, consistent)
	if age := time.Since(at); err == nil && (age < -time.Minute || age > 10*time.Minute) {
		v.t.Errorf("time of the answer: got %v, want about now", at)
	}
	return r, time.Time{}, err
}

func newClient(t testing.TB, endpoint string, with ...func(*aws.Options)) *dynamodb.Client {
	t.Helper()
	return dynamodb.NewFromConfig(awstest.Config(t, endpoint, with...), func(o *dynamodb.Options) {
		// DynamoDB Local leaves it out of some answers, which the SDK then logs.
		o.DisableValidateResponseChecksum = true
	})
}

// open makes the tables of a test, and returns a client to them.
func open(t testing.TB, o dynamo.Options) *dynamodb.Client {
	t.Helper()
	client := newClient(t, awstest.DynamoDB(t))
	if _, err := dynamo.New(client, o).Ensure(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	return client
}

func expireRows(t testing.TB, client *dynamodb.Client, table, attribute string, on bool) {
	t.Helper()
	_, err := client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: sdk.Bool(on)},
	})
	if err != nil {
		t.Fatal(err)
	}
}
