package server

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Credential is a certificate, a key, a token or another secret that the configuration names, without what is in it.
type Credential struct {
	// Setting is the key of the configuration, and Source the file, or a variable after a "$".
	Setting, Source string
	// ChangedAt is when the file was changed; zero: it is not known.
	ChangedAt time.Time
	// Reloaded: it is read again when it changes. ReadAt is when it was read otherwise.
	Reloaded bool
	ReadAt   time.Time
	// Subject and ExpiresAt are of the certificate that expires first.
	Subject   string
	ExpiresAt time.Time
	// Problem is why it cannot be read now.
	Problem string
}

// Outdated reports whether the file was changed after it was read, and counts only after a restart.
func (c Credential) Outdated() bool { return !c.Reloaded && c.ChangedAt.After(c.ReadAt) }

// GetStatus says which controlds are alive, and how old the certificates and keys of this one are.
func (s *service) GetStatus(ctx context.Context, _ *remudav1.GetStatusRequest) (*remudav1.GetStatusResponse, error) {
	resp := &remudav1.GetStatusResponse{}
	if s.replicas != nil {
		alive, err := s.replicas(ctx)
		if err != nil {
			return nil, s.toStatus(ctx, err)
		}
		for _, r := range alive {
			resp.Replicas = append(resp.Replicas, replicaMessage(r, r.Name == s.replica))
		}
	}
	if s.credentials != nil {
		for _, c := range s.credentials() {
			resp.Credentials = append(resp.Credentials, credentialMessage(c))
		}
	}
	hold, err := s.fleet.FleetHold(ctx)
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	resp.Hold = holdMessage(hold, s.now())
	return resp, nil
}

func replicaMessage(r replicas.Replica, answering bool) *remudav1.Replica {
	return &remudav1.Replica{
		Name: r.Name, Version: r.Version, StartTime: timestampOrNil(r.StartedAt), ClockOffset: durationpb.New(r.ClockOffset), Answering: answering,
	}
}

func credentialMessage(c Credential) *remudav1.Credential {
	return &remudav1.Credential{
		Setting: c.Setting, Source: c.Source, ChangeTime: timestampOrNil(c.ChangedAt), Reloaded: c.Reloaded, Outdated: c.Outdated(),
		Subject: line.First(c.Subject), ExpireTime: timestampOrNil(c.ExpiresAt), Problem: c.Problem,
	}
}

// holdMessage is nil while no hold is in force.
func holdMessage(h fleethold.Hold, now time.Time) *remudav1.FleetHold {
	if !h.InForce(now) {
		return nil
	}
	return &remudav1.FleetHold{UntilTime: timestamppb.New(h.Until), Operator: h.By, Reason: h.Reason}
}
