package firstaccount

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

var tablesCheck = check{
	name: "tables",
	does: "makes the tables of a fleet, all at the same time",
	assumptions: []findings.Assumption{
		{
			Name:     "tables-made",
			Text:     "Refresh makes all tables in an account that has none, with its own policy, within five minutes.",
			ReliedOn: "internal/store/dynamo/ensure.go: activeWithin; internal/aws/policy.go: the policy of refresh",
		},
		{
			Name:     "tables-at-once",
			Text:     "DynamoDB makes several tables with indexes at the same time.",
			ReliedOn: "internal/store/dynamo/ensure.go: nowhere, since a table that has to wait is tried again",
		},
	},
	run: checkTables,
}

func checkTables(ctx context.Context, s *session) error {
	begun := time.Now()
	err := s.tables(ctx)
	took := findings.Seconds(time.Since(begun))
	refused := s.fleet.tries.count("CreateTable", "LimitExceededException")
	if err != nil {
		if ctx.Err() == nil {
			s.Decide("tables-made", false, "%v", err)
		}
		return err
	}
	s.Decide("tables-made", true, "they were there after %s", took)
	s.Decide("tables-at-once", refused == 0, "%s of CreateTable", s.fleet.tries.of("CreateTable"))
	return nil
}

// tables makes them as Refresh does, with the role of controld, once.
func (s *session) tables(ctx context.Context) error {
	if s.tabled {
		return nil
	}
	store := dynamo.New(dynamodb.NewFromConfig(s.fleet.cfg), dynamo.Options{Prefix: s.id})
	_, err := s.must(ctx, s.Times.Settle, "the tables", func() (bool, error) {
		_, err := store.Ensure(ctx, false)
		if aws.ClassOf(err) == aws.Denied && !s.settled() {
			s.Say("not made, which may be since the roles are new: %v", err)
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	s.tabled = true
	return s.tagTables(ctx)
}

// tagTables puts the tag of the run on them, which Refresh does not.
func (s *session) tagTables(ctx context.Context) error {
	var made remains
	if err := s.findTables(ctx, s.id, &made); err != nil {
		return err
	}
	for _, name := range made.tables {
		out, err := s.admin.dynamo.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			return aws.Wrap("describe table "+name, err)
		}
		_, err = s.admin.dynamo.TagResource(ctx, &dynamodb.TagResourceInput{
			ResourceArn: out.Table.TableArn, Tags: []dynamotypes.Tag{{Key: str(tagFleet), Value: &s.id}},
		})
		if err != nil && aws.Code(err) != "UnknownOperationException" { // of DynamoDB Local
			return aws.Wrap("tag table "+name, err)
		}
	}
	return nil
}
