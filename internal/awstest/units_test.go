package awstest_test

import (
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
)

// What a call takes of DynamoDB is counted as DynamoDB says it, and the caller's input stays as it was.
func TestUnitsAreCounted(t *testing.T) {
	var calls aws.Calls
	client := dynamodb.NewFromConfig(awstest.Config(t, awstest.DynamoDB(t), func(o *aws.Options) { o.Calls = &calls }))
	createTable(t, client, "counted")
	if got := calls.Units(); got != (aws.Units{}) {
		t.Errorf("a call without rows took %+v", got)
	}
	row := map[string]ddb.AttributeValue{"key": &ddb.AttributeValueMemberS{Value: "a"}}
	put := &dynamodb.PutItemInput{TableName: sdk.String("counted"), Item: row}
	wants := func(what string, want aws.Units, err error) {
		t.Helper()
		if got := calls.Units(); err != nil || got != want {
			t.Errorf("after %s: %+v (%v), want %+v", what, got, err, want)
		}
	}
	_, err := client.PutItem(t.Context(), put)
	wants("a write", aws.Units{Writes: 1}, err)
	if put.ReturnConsumedCapacity != "" {
		t.Error("the input of the caller was changed")
	}
	_, err = client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: sdk.String("counted"), Key: row})
	wants("a read that may be old", aws.Units{Writes: 1, HalfReads: 1}, err)
	_, err = client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]ddb.KeysAndAttributes{
		"counted": {Keys: []map[string]ddb.AttributeValue{row}, ConsistentRead: sdk.Bool(true)},
	}})
	wants("a batch", aws.Units{Writes: 1, HalfReads: 3}, err)
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: sdk.String("missing"), Item: row}); err == nil {
		t.Error("a table that is not there took a row")
	}
	wants("a refused write", aws.Units{Writes: 1, HalfReads: 3}, nil)
}
