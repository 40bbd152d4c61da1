package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

func TestHoldFleet(t *testing.T) {
	w := newWorld(t)
	got, err := w.Provision(t.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: "1"})
	if err != nil {
		t.Fatal(err)
	}
	id := got.GetInstances()[0].GetInstanceId()
	before := time.Now()
	held, err := w.HoldFleet(t.Context(), &remudav1.HoldFleetRequest{Duration: durationpb.New(time.Hour), Reason: "looking"})
	if err != nil {
		t.Fatal(err)
	}
	if until := held.GetUntilTime().AsTime(); until.Before(before.Add(time.Hour)) || until.After(time.Now().Add(time.Hour)) {
		t.Errorf("held until %s, an hour after %s", until, before)
	}
	_, err = w.TerminateInstance(t.Context(), &remudav1.TerminateInstanceRequest{InstanceId: id})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("an order to end a host of a held fleet: %v", err)
	}
	lifted, err := w.HoldFleet(t.Context(), &remudav1.HoldFleetRequest{Duration: durationpb.New(0)})
	if err != nil || lifted.GetUntilTime() != nil {
		t.Errorf("a hold that was taken away: until %v, error %v", lifted.GetUntilTime(), err)
	}
	if _, err = w.TerminateInstance(t.Context(), &remudav1.TerminateInstanceRequest{InstanceId: id}); err != nil {
		t.Errorf("an order to end a host after the hold: %v", err)
	}
	for _, d := range []*durationpb.Duration{nil, durationpb.New(-time.Second), durationpb.New(25 * time.Hour)} {
		_, err := w.HoldFleet(t.Context(), &remudav1.HoldFleetRequest{Duration: d})
		if d.AsDuration() > 24*time.Hour && !strings.Contains(fmt.Sprint(err), "less than or equal to 24h") {
			t.Errorf("%s: got %v, which does not say the most", d.AsDuration(), err)
		}
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("a hold of %v: %v, want INVALID_ARGUMENT", d, err)
		}
	}
}
