package dynamo

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

type record = lifecycle.Record

// claimed are the attributes that Record.Claimed sets or removes, except the counters and
// the runner name. The trust key of a bound host gets the value that the condition asks for.
var claimed = []string{
	"state", pooledAt, "restingAt", poolKey, runID, "runAttempt", "repository", "workflow", requestID, "maxRuntime", "labels", "arrival", "registration",
	"jobsOf", "forks", "keepCaches", "rootVolume", "githubRunnerId", "threshold", dueAt, dueShard, "updatedAt", "reason", "reasonCode", "trustKey",
}

// ClaimInstance takes a pooled host if c.Holds for its record: else ErrConflict. It is one write without a
// read, so what depends on the record as stored is computed by DynamoDB.
func (s *Store) ClaimInstance(ctx context.Context, c lifecycle.Claim) (record, error) {
	what := "claim instance " + c.HostKey
	u, err := claimUpdate(c)
	if err != nil {
		return record{}, fmt.Errorf("%s: %w", what, err)
	}
	holds := u.when(claimCondition(c))
	id := s.writeID()
	u.to(item{writeID: text(id)}, writeID)
	out, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: s.table(instances), Key: item{hostKey: text(c.HostKey)},
		UpdateExpression: u.expression(), ConditionExpression: holds,
		ExpressionAttributeNames: u.names, ExpressionAttributeValues: u.values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	found, failed := conditionFailed(err)
	switch {
	case failed && textOf(found, writeID) != id:
		return record{}, lost(what)
	case failed: // by our own claim, whose answer was lost: see put
	case err != nil:
		return record{}, s.failed(what, instances, err)
	default:
		found = out.Attributes
	}
	row, err := rowOf(store.Instances.Kind, store.Key{c.HostKey}, found)
	if err != nil {
		return record{}, fmt.Errorf("%s: %w", what, err)
	}
	return *row.(*record), nil
}

// claimCondition is Claim.Holds in the words of DynamoDB, in which no
// comparison with an attribute that is missing holds.
func claimCondition(c lifecycle.Claim) condition {
	with := condition{
		expression: "#state = :idle AND attribute_exists(#pooledAt) AND #assignment = :assignment" +
			" AND (attribute_not_exists(#retiring) OR #retiring = :false)" +
			" AND attribute_not_exists(#interruptionAt) AND attribute_not_exists(#stop)" +
			" AND (attribute_not_exists(#hold) OR #hold <= :now) AND #threshold > :margin",
		names: map[string]string{
			"#state": "state", "#pooledAt": pooledAt, "#assignment": "assignment", "#retiring": "retiring",
			"#interruptionAt": "interruptionAt", "#stop": "stop", "#hold": "hold", "#threshold": "threshold", "#trustKey": "trustKey",
		},
		values: item{
			":idle": text(string(lifecycle.StateIdle)), ":assignment": number(c.Assignment),
			":false": &types.AttributeValueMemberBOOL{Value: false},
			":now":   timeValue(c.Now), ":margin": timeValue(c.Now.Add(c.Margin)),
		},
	}
	if c.Awake {
		with.expression += " AND attribute_not_exists(#restingAt)"
		with.names["#restingAt"] = "restingAt"
	}
	if c.JobsOf != "" {
		with.expression += " AND attribute_not_exists(#standby)"
		with.names["#standby"] = "standby"
	}
	if c.TrustKey == "" {
		with.expression += " AND attribute_not_exists(#trustKey)"
	} else {
		with.expression += " AND #trustKey = :trustKey"
		with.values[":trustKey"] = text(c.TrustKey)
	}
	return with
}

// claimUpdate is Record.Claimed in the words of DynamoDB.
func claimUpdate(c lifecycle.Claim) (*update, error) {
	stub := record{HostKey: c.HostKey, State: lifecycle.StateIdle, PooledAt: time.Unix(0, 0), Assignment: c.Assignment}
	after, err := stub.Claimed(c)
	if err != nil {
		return nil, err
	}
	it, err := itemOf(store.Instances.Kind, store.Instances.Copy(&after))
	if err != nil {
		return nil, err
	}
	u := newUpdate()
	for _, attribute := range claimed {
		u.to(it, attribute)
	}
	u.increment("assignment")
	u.increment("uses")
	u.increment(version)
	u.move(nextRunnerName, "runnerName")
	return u, nil
}

// update builds the expression of an update.
type update struct {
	sets, removes []string
	names         map[string]string
	values        item
}

func newUpdate() *update { return &update{names: map[string]string{}, values: item{}} }

// when adds what the expression of a condition speaks of.
func (u *update) when(c condition) *string {
	maps.Copy(u.names, c.names)
	maps.Copy(u.values, c.values)
	return &c.expression
}

// to gives the attribute the value that the row has, and removes it if the row has none.
func (u *update) to(row item, attribute string) {
	u.names["#"+attribute] = attribute
	value, ok := row[attribute]
	if !ok {
		u.removes = append(u.removes, "#"+attribute)
		return
	}
	u.values[":"+attribute] = value
	u.sets = append(u.sets, "#"+attribute+" = :"+attribute)
}

// increment adds one to a number, which is 0 while it is missing.
func (u *update) increment(attribute string) {
	u.names["#"+attribute] = attribute
	u.values[":0"], u.values[":1"] = number(0), number(1)
	u.sets = append(u.sets, "#"+attribute+" = if_not_exists(#"+attribute+", :0) + :1")
}

// move takes the value of one attribute to another.
func (u *update) move(from, to string) {
	u.names["#"+from], u.names["#"+to] = from, to
	u.sets = append(u.sets, "#"+to+" = #"+from)
	u.removes = append(u.removes, "#"+from)
}

func (u *update) expression() *string {
	var parts []string
	if len(u.sets) > 0 {
		parts = append(parts, "SET "+strings.Join(u.sets, ", "))
	}
	if len(u.removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(u.removes, ", "))
	}
	text := strings.Join(parts, " ")
	return &text
}
