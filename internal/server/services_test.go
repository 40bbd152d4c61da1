package server_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// containers are a service of one job, of more than an int32 holds, or away.
type containers struct{ desired map[string]int }

func (c containers) Describe(_ context.Context, services []string) map[string]model.Observation {
	looks := map[string]model.Observation{}
	for _, name := range services {
		looks[name] = model.Observation{Tasks: model.Tasks{Desired: c.desired[name], Running: c.desired[name]}}
		if name == "away" {
			looks[name] = model.Observation{Err: &lifecycle.UnavailableError{What: "describe", Err: errors.New("away")}}
		}
	}
	return looks
}

func (c containers) SetDesired(_ context.Context, service string, desired int) error {
	c.desired[service] = desired
	return nil
}

func (c containers) Count(_ context.Context, service string) (model.Backlog, error) {
	one, none, many := 1, 0, math.MaxInt32+5
	if service == "many" {
		return model.Backlog{Queued: &many}, nil
	}
	return model.Backlog{Queued: &one, Busy: &none}, nil
}

func servicesWorld(t *testing.T) *world {
	t.Helper()
	c := containers{map[string]int{}}
	all := map[string]services.Service{"queue": {Name: "queue"}}
	for _, name := range []string{"away", "jobs-eu", "many"} {
		all[name] = services.Service{
			Name: name, Region: "eu-west-1", Cluster: "runners", ECSService: "jobs", Backlog: c,
			Policy: policy.ServicePolicy{Maximum: 2, BacklogPerRunner: 10, IdleChecks: 5},
		}
	}
	return newWorldOf(t, server.Callers{}, func(o *fleet.Options) {
		o.Services = &services.Options{Store: o.Store.(*hosts).Store, Scaler: c, Services: all}
	})
}

func TestNudgeService(t *testing.T) {
	t.Parallel()
	w := servicesWorld(t)
	got, err := w.NudgeService(t.Context(), &remudav1.NudgeServiceRequest{Service: "jobs-eu"})
	if err != nil {
		t.Fatal(err)
	}
	want := &remudav1.Service{
		Name: "jobs-eu", Region: "eu-west-1", Cluster: "runners", EcsService: "jobs", DesiredCount: 1, QueuedCount: 1,
		Reason: "1 job waits and there are no runners", ReasonCode: "jobs_waiting", CheckTime: got.GetService().GetCheckTime(),
	}
	if diff := cmp.Diff(want, got.GetService(), protocmp.Transform()); diff != "" || want.GetCheckTime() == nil {
		t.Errorf("service (-want +got):\n%s", diff)
	}
	for name, code := range map[string]codes.Code{
		"": codes.InvalidArgument, "X_y": codes.InvalidArgument, "unknown": codes.NotFound, "queue": codes.FailedPrecondition, "away": codes.Unavailable,
	} {
		if _, err := w.NudgeService(t.Context(), &remudav1.NudgeServiceRequest{Service: name}); status.Code(err) != code {
			t.Errorf("%q: got %v, want %s", name, err, code)
		}
	}
}

func TestListServices(t *testing.T) {
	t.Parallel()
	w := servicesWorld(t)
	if _, err := w.NudgeService(t.Context(), &remudav1.NudgeServiceRequest{Service: "many"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	req := &remudav1.ListServicesRequest{PageSize: 3}
	for {
		got, err := w.ListServices(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got.GetServices() {
			names = append(names, s.GetName())
			if s.GetName() == "many" && (s.GetQueuedCount() != math.MaxInt32 || s.GetBusyCount() != 0 || s.GetDesiredCount() != 1) {
				t.Errorf("many: %v", s)
			}
		}
		if req.PageToken = got.GetNextPageToken(); req.GetPageToken() == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"away", "jobs-eu", "many", "queue"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := w.ListServices(t.Context(), &remudav1.ListServicesRequest{PageToken: "x"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("foreign token: got %v", err)
	}
}
