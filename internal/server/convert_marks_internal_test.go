package server

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// What scale-down has seen of a host, and what its agent says of a failure, is
// shown. The agent's text may be anything, and the contract takes only UTF-8.
func TestMarksAndDetailAreShown(t *testing.T) {
	f, err := fleet.New(fleet.Options{
		Store: struct{ fleet.Store }{}, Queue: struct{ fleet.Queue }{}, Compute: struct{ fleet.Compute }{},
		GitHub: struct{ fleet.GitHub }{}, Replica: "test", Pools: map[string]fleet.Pool{"default": {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, at := &service{now: time.Now, fleet: f}, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	r := lifecycle.Record{InstanceID: "i-1", State: lifecycle.StateRunning, Assignment: 3, OrphanAt: at, IdleDetectedAt: at.Add(time.Minute)}
	got := s.instance(r, &lifecycle.Report{Assignment: 3, Detail: "no route to \xff github"})
	if !got.GetOrphanTime().AsTime().Equal(at) || !got.GetIdleTime().AsTime().Equal(at.Add(time.Minute)) {
		t.Errorf("orphan at %s, idle at %s", got.GetOrphanTime().AsTime(), got.GetIdleTime().AsTime())
	}
	if got.GetDetail() != "no route to \uFFFD github" {
		t.Errorf("detail: %q", got.GetDetail())
	}
	if _, err := proto.Marshal(got); err != nil {
		t.Error(err)
	}
	bare := s.instance(lifecycle.Record{InstanceID: "i-1", Assignment: 4}, &lifecycle.Report{Assignment: 3, Detail: "of the one before"})
	if bare.GetOrphanTime() != nil || bare.GetIdleTime() != nil || bare.GetDetail() != "" {
		t.Errorf("without marks: %v", bare)
	}
}
