package firstaccount

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
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
		{
			Name:     "rows-allowed",
			Text:     "The policy of controld allows to write and read a row, and to ask an index.",
			ReliedOn: "internal/aws/policy.go: OnTables; internal/store/dynamo",
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
	return s.row(ctx)
}

// row writes and reads one, and asks an index.
func (s *session) row(ctx context.Context) error {
	store := s.store()
	hold, err := store.UpdateFleetHold(ctx, fleethold.Hold{})
	if err == nil {
		_, err = store.FleetHold(ctx)
	}
	if err == nil {
		_, err = store.InstancesOfRun(ctx, everyRun, lifecycle.PageOf{})
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	s.Decide("rows-allowed", err == nil, "a row has version %d, and the index was asked: %s", hold.Version, outcome(err))
	return nil
}

// outcome is an error for people, or that there was none.
func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func (s *session) store() *dynamo.Store {
	return dynamo.New(dynamodb.NewFromConfig(s.fleet.cfg), dynamo.Options{Prefix: s.id})
}

// tables makes them as Refresh does, with the role of controld, once.
func (s *session) tables(ctx context.Context) error {
	if s.tabled {
		return nil
	}
	store := s.store()
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
	return nil
}
