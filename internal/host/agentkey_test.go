package host_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

func identified(t *testing.T, edits ...func(o *host.Options)) *bed {
	t.Helper()
	b := newBed(t, append(edits, func(o *host.Options) { o.Version = "1.2.3" })...)
	b.SetIdentity(b.id, nil, hclog.NewNullLogger())
	return b
}

func TestCleanUpIsStated(t *testing.T) {
	t.Parallel()
	b := identified(t)
	s := b.clean(8)
	got, err := statement.Open(s.Cleaned.Statement, s.Key)
	want := statement.Reset{
		Host: b.id, BootID: s.BootID, Assignment: 8, RunBefore: "acme/shop/41", Level: statement.LevelSlate,
		Done:    []string{"processes", "directories", "runner"},
		Checked: []statement.Check{{Name: "registration"}, {Name: "processes"}, {Name: "directories"}, {Name: "disk space"}},
		Result:  statement.ResultClean, AgentVersion: "1.2.3", KeyWithinReach: true, // since jobs run as the user of this test
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(statement.Reset{}, "BegunAt", "EndedAt")); diff != "" || err != nil {
		t.Errorf("statement: %v (-want +got):\n%s", err, diff)
	}
	if took := got.EndedAt.Sub(got.BegunAt); took <= 0 || took > patience {
		t.Errorf("it took %s", took)
	}
	if err := got.Shows(b.id, 8, s.BootID); err != nil {
		t.Error(err)
	}
}

func TestFailedCleanUpIsStated(t *testing.T) {
	t.Parallel()
	b := identified(t, func(o *host.Options) { o.MinimumFree = 1 << 62 })
	s := b.clean(8)
	got, err := statement.Open(s.Cleaned.Statement, s.Key)
	if err != nil || s.Cleaned.Phase != agent.PhaseFailed || got.Result != statement.ResultFailed || got.Findings() != 1 {
		t.Errorf("cleaned %+v, statement %+v, error %v", s.Cleaned, got, err)
	}
}

// The key lives as long as the host does, and no longer: a copy of its disk is another host's.
func TestKeyOfTheHost(t *testing.T) {
	t.Parallel()
	b := identified(t)
	first := b.look().Key
	info, err := os.Stat(b.path("state/agent.key"))
	if err != nil || info.Mode() != 0o600 || !first.Valid() {
		t.Fatalf("key %q in a file %v, error %v", first, info, err)
	}
	b.reopen()
	if key := b.look().Key; key != "" {
		t.Errorf("key %q before the host knows which one it is", key)
	}
	b.SetIdentity(b.id, nil, hclog.NewNullLogger())
	if key := b.look().Key; key != first {
		t.Errorf("another agent has key %q, want %q", key, first)
	}
	b.SetIdentity(b.id+"0", nil, hclog.NewNullLogger())
	if key := b.look().Key; key == first || !key.Valid() {
		t.Errorf("a copy of the disk has key %q, want another than %q", key, first)
	}
	b.SetIdentity(b.id, nil, hclog.NewNullLogger())
	b.check(os.WriteFile(b.path("state/agent.key"), []byte("damaged"), 0o600))
	if s := b.clean(8); s.Cleaned.Phase != agent.PhaseOK || s.Cleaned.Statement != "" {
		t.Errorf("with a damaged key: %+v", s.Cleaned)
	}
}
