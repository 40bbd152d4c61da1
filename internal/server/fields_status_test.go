package server_test

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/server"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// twoReplicas are the one that answers, and one that is too old to say anything.
func twoReplicas(context.Context) ([]replicas.Replica, error) {
	return []replicas.Replica{{Name: "a", Beats: 3}, {Name: "b", Beats: 4, Version: "1.2.3", StartedAt: at(1), ClockOffset: -2 * time.Second}}, nil
}

// twoCredentials are a certificate that was changed too late to count, and a token that cannot be read.
func twoCredentials() []server.Credential {
	return []server.Credential{
		{Setting: "grpc.tls.client_ca_file", Source: "/ca.pem", ChangedAt: at(3), ReadAt: at(2), Subject: "CN=ca", ExpiresAt: at(4)},
		{Setting: "github.token_file", Source: "/token", ChangedAt: at(3), ReadAt: at(2), Reloaded: true, Problem: "/token is away"},
	}
}

// statusRows have a row for each field of GetStatus.
var statusRows = []fieldRow{{
	method: "GetStatus", req: &remudav1.GetStatusRequest{}, prepare: func(f *fieldWorld) {
		_, err := f.store.UpdateFleetHold(f.t.Context(), fleethold.Hold{Until: at(5), SetAt: at(0), By: "CN=ops", Reason: "a look"})
		f.must(err)
	},
	want: &remudav1.GetStatusResponse{
		Replicas: []*remudav1.Replica{
			{Name: "a", ClockOffset: durationpb.New(0)},
			{Name: "b", Version: "1.2.3", StartTime: stamp(1), ClockOffset: durationpb.New(-2 * time.Second), Answering: true},
		},
		Credentials: []*remudav1.Credential{
			{Setting: "grpc.tls.client_ca_file", Source: "/ca.pem", ChangeTime: stamp(3), Outdated: true, Subject: "CN=ca", ExpireTime: stamp(4)},
			{Setting: "github.token_file", Source: "/token", ChangeTime: stamp(3), Reloaded: true, Problem: "/token is away"},
		},
		Hold: &remudav1.FleetHold{UntilTime: timestamppb.New(at(5)), Operator: "CN=ops", Reason: "a look"},
	},
}}
