package aws_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// TestAFleetInAWS is the life of a fleet, from an empty account on. What it
// called there is compared with the policies at the end.
func TestAFleetInAWS(t *testing.T) {
	s := newStage(t)
	for _, part := range []struct {
		name string
		run  func()
	}{
		{"a refresh makes what is missing", s.refreshMakesWhatIsMissing},
		{"cold, then warm", s.coldThenWarm},
		{"another controld goes on", s.anotherControld},
		{"idle hosts expire", s.idleHostsExpire},
		{"spot falls back", s.spotFallsBack},
		{"too few are rolled back", s.tooFewAreRolledBack},
		{"a second refresh finds nothing to do", s.refreshFindsNothing},
		{"the policies are what was called", s.policiesAreWhatWasCalled},
	} {
		began := time.Now()
		part.run()
		t.Logf("%s: %s", part.name, time.Since(began).Round(100*time.Millisecond))
	}
}

func (s *stage) refreshMakesWhatIsMissing() {
	s.Helper()
	dry, err := s.fleet.Refresh(s.ctx, &remudav1.RefreshRequest{DryRun: true})
	check(s.TB, err)
	made, err := s.fleet.Refresh(s.ctx, &remudav1.RefreshRequest{})
	check(s.TB, err)
	names := func(resources []*remudav1.Resource) []string {
		var list []string
		for _, r := range resources {
			list = append(list, r.GetKind()+" "+r.GetName()+" "+r.GetChange().String())
		}
		return list
	}
	if diff := cmp.Diff(names(dry.GetResources()), names(made.GetResources())); diff != "" {
		s.Errorf("a dry run said otherwise (-dry +made):\n%s", diff)
	}
	text := strings.Join(names(made.GetResources()), "\n")
	for _, want := range []string{
		"table remuda-instances ", "table remuda-reports ", "table remuda-requests ", "table remuda-events ", "table remuda-leases ", "table remuda-jobs ",
		"queue remuda-large-on-demand ", "queue remuda-large-spot ", "queue remuda-malformed ",
		"launch-template remuda-default ", "launch-template remuda-brief ",
	} {
		if !strings.Contains(text, want+"RESOURCE_CHANGE_CREATED") {
			s.Errorf("%s was not made:\n%s", want, text)
		}
	}
}

func (s *stage) coldThenWarm() {
	s.Helper()
	cold := s.provision(ask("101", 2))
	if cold.GetCreatedCount() != 2 || len(ids(cold.GetInstances())) != 2 {
		s.Fatalf("cold: %v", cold)
	}
	s.work("101", "echo cold > leftover")
	if got := s.release("101"); got.GetPooledCount() != 2 {
		s.Fatalf("released: %v", got)
	}
	warm := s.provision(ask("102", 2))
	if warm.GetReusedCount() != 2 {
		s.Fatalf("warm: %v", warm)
	}
	if diff := cmp.Diff(ids(cold.GetInstances()), ids(warm.GetInstances())); diff != "" {
		s.Errorf("other hosts came (-cold +warm):\n%s", diff)
	}
	s.work("102", "test ! -e leftover")
	if got := s.release("102"); got.GetPooledCount() != 2 {
		s.Fatalf("released: %v", got)
	}
}

// anotherControld knows nothing but what is in AWS.
func (s *stage) anotherControld() {
	s.Helper()
	s.controld.kill()
	s.startControld()
	got := s.provision(ask("151", 3))
	if got.GetReusedCount() != 2 || got.GetCreatedCount() != 1 {
		s.Errorf("got %v", got)
	}
	s.release("151")
}

func (s *stage) idleHostsExpire() {
	s.Helper()
	s.provision(ask("201", 1, func(r *remudav1.ProvisionRequest) { r.Pool = "brief" }))
	if n := s.living(); n != 4 {
		s.Fatalf("%d instances run, want 4", n)
	}
	s.release("201")
	s.eventually("the idle host has gone", func() bool { return s.living() == 3 })
}

func (s *stage) spotFallsBack() {
	s.Helper()
	s.account.gap.SetLimits(ec2gap.Limit{Usage: lifecycle.UsageSpot, Most: 0})
	got := s.provision(ask("301", 1, func(r *remudav1.ProvisionRequest) {
		r.UsageClass, r.AllowOnDemandFallback = remudav1.UsageClass_USAGE_CLASS_SPOT, true
	}))
	if i := got.GetInstances(); len(i) != 1 || i[0].GetUsageClass() != remudav1.UsageClass_USAGE_CLASS_ON_DEMAND {
		s.Errorf("got %v", got)
	}
	s.account.gap.SetLimits()
	spot := s.provision(ask("302", 1, func(r *remudav1.ProvisionRequest) { r.UsageClass = remudav1.UsageClass_USAGE_CLASS_SPOT }))
	if i := spot.GetInstances(); len(i) != 1 || i[0].GetUsageClass() != remudav1.UsageClass_USAGE_CLASS_SPOT {
		s.Errorf("got %v", spot)
	}
	s.release("301")
	s.release("302")
}

// tooFewAreRolledBack: two of five are to be had in time. They may be the pooled
// ones, which go back to the pool; whatever was launched ends.
func (s *stage) tooFewAreRolledBack() {
	s.Helper()
	before := s.living()
	s.account.gap.SetLimits(ec2gap.Limit{Most: before + 2})
	_, err := s.fleet.Provision(s.ctx, ask("401", 20, func(r *remudav1.ProvisionRequest) {
		r.Pool, r.Timeout = "brief", durationpb.New(20*time.Second)
	}))
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(status.Convert(err).Message(), "20") {
		s.Errorf("got %v", err)
	}
	s.account.gap.SetLimits()
	s.eventually("what was launched has gone", func() bool { return s.living() == before })
	runners, err := s.github.Runners(s.ctx)
	check(s.TB, err)
	if len(local.OfRuns(runners)) != 0 {
		s.eventually("no registration is left", func() bool {
			runners, err := s.github.Runners(s.ctx)
			return err == nil && len(local.OfRuns(runners)) == 0
		})
	}
}

func (s *stage) refreshFindsNothing() {
	s.Helper()
	got, err := s.fleet.Refresh(s.ctx, &remudav1.RefreshRequest{})
	check(s.TB, err)
	if len(got.GetResources()) != 0 {
		s.Errorf("a second refresh changed %v", got.GetResources())
	}
}
