package meter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

func TestCallsOfADay(t *testing.T) {
	t.Parallel()
	row := meter.NewCallsOfDay("2026-11-27", "controld-1/x")
	if row.Month != "2026-11" || row.Day() != "2026-11-27" || !row.ExpiresAt.Equal(after(60).Add(meter.KeepDays)) {
		t.Errorf("%+v", row)
	}
	grown := row.Grown(nil, []meter.Calls{{Service: "sqs", Requests: 2}, {Service: "dynamodb", Requests: 3, HalfReads: 5, Writes: 1}, {Service: "ec2"}})
	again := grown.Grown([]meter.Calls{{Service: "sqs", Requests: 2}, {Service: "dynamodb", Requests: 3, HalfReads: 5, Writes: 1}},
		[]meter.Calls{{Service: "sqs", Requests: 2}, {Service: "dynamodb", Requests: 4, HalfReads: 5, Writes: 3}, {Service: "iam", Requests: 1}})
	want := []meter.Calls{{Service: "dynamodb", Requests: 4, HalfReads: 5, Writes: 3}, {Service: "iam", Requests: 1}, {Service: "sqs", Requests: 2}}
	if diff := cmp.Diff(want, again.Services); diff != "" || len(grown.Services) != 2 || len(row.Services) != 0 {
		t.Errorf("%+v, then (-want +got):\n%s", grown.Services, diff)
	}
}

func TestCallsTogether(t *testing.T) {
	t.Parallel()
	got := meter.Calls{Service: "dynamodb", Requests: 3, HalfReads: 5, Writes: 1}.Plus(meter.Calls{Requests: 10, HalfReads: 20, Writes: 30})
	if want := (meter.Calls{Service: "dynamodb", Requests: 13, HalfReads: 25, Writes: 31}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
