package fleet_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// stating has the agents of all hosts sign their clean-ups by a key of this seed, after the run that they think was before.
func (w *world) stating(seed byte, runBefore string) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	w.set(func() {
		w.forge["*"] = func(p *lifecycle.Report) {
			r := w.record(p.HostKey)
			p.BootID = "boot-1"
			if r.AgentKey == "" {
				p.AgentKey = statement.KeyOf(key)
			}
			if p.Signal != lifecycle.SignalRemoveRegOK || !r.Releasing() {
				return
			}
			text, err := statement.Sign(statement.Reset{
				Host: r.InstanceID, BootID: "boot-1", Assignment: r.Assignment, RunBefore: runBefore, Level: statement.LevelSlate,
				Result: statement.ResultClean, Checked: []statement.Check{{Name: "directories"}},
			}, key)
			if err != nil {
				w.t.Error(err)
			}
			p.Statement = text
		}
	})
}

// statements are the assignments of the statements that belong to a run, as an operator or, with own, a workflow sees them.
func (w *world) statements(ctx context.Context, run string, own fleet.OfRun) (assignments []int64) {
	w.t.Helper()
	e, err := w.fleet.Explain(ctx, "acme/app", run, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	stated, err := w.fleet.Statements(ctx, e, own, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, event := range stated {
		r, err := statement.Open(event.Statement, event.AgentKey)
		if err != nil || r.Assignment != event.Assignment || r.Host != event.InstanceID {
			w.t.Errorf("%+v, error %v", event, err)
		}
		assignments = append(assignments, event.Assignment)
	}
	return assignments
}

// A run has the statement of the reset before it and of the one after it, on the same host, and no other.
func TestStatementsOfARun(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, _ *diary, _ *pace) {
		w.stating(1, "acme/app/0")
		for _, run := range []string{"1", "2", "3"} {
			w.mustProvision(ctx, demand(run, run, 1))
			w.release(ctx, run, true)
		}
		for run, want := range map[string][]int64{"1": {2}, "2": {2, 4}, "3": {4, 6}} {
			if diff := cmp.Diff(want, w.statements(ctx, run, fleet.OfRun{})); diff != "" {
				t.Errorf("run %s (-want +got):\n%s", run, diff)
			}
		}
	})
}

// A workflow does not learn which run of another repository was on its host.
func TestStatementsForAWorkflow(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, _ *diary, _ *pace) {
		w.stating(1, "acme/other/7")
		w.mustProvision(ctx, demand("1", "a", 1))
		w.release(ctx, "1", true)
		w.stating(1, "acme/app/1")
		w.mustProvision(ctx, demand("2", "b", 1))
		w.release(ctx, "2", true)
		if diff := cmp.Diff([]int64{4}, w.statements(ctx, "2", fleet.OfRun{Repository: "Acme/App", RunID: "2"})); diff != "" {
			t.Errorf("statements (-want +got):\n%s", diff)
		}
	})
}

// Another key than that of before the first job ends the host.
func TestAnotherAgentEndsItsHost(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, _ *diary, _ *pace) {
		w.stating(1, "")
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		if host.AgentKey == "" {
			t.Error("the host has no key once it is ready")
		}
		w.stating(2, "")
		w.release(ctx, "1", true)
		if r := w.record(host.HostKey); r.State != lifecycle.StateTerminated || r.ReasonCode != lifecycle.ReasonStatementRefused {
			t.Errorf("the host is %s: %s", r.Condition(), r.Reason)
		}
	})
}
