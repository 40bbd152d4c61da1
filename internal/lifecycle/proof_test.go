package lifecycle_test

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

func agentKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

var itsKey, anotherKey = statement.KeyOf(agentKey(1)), statement.KeyOf(agentKey(2))

// cleanFacts are those of a released host that says it is clean, with a statement by the key that its record has.
func cleanFacts(t *testing.T, change func(*statement.Reset)) (lifecycle.Facts, lifecycle.Policy) {
	t.Helper()
	facts, policy := scene{host: "releasing", answer: "UD_REMOVE_REG_OK", deadline: "ahead", beat: "fresh", request: "unknown"}.facts()
	facts.Record.AgentKey, facts.Report.BootID = itsKey, "boot-1"
	facts.Report.Statement = signedReset(t, facts.Record, agentKey(1), change)
	return facts, policy
}

func signedReset(t *testing.T, r lifecycle.Record, key ed25519.PrivateKey, change func(*statement.Reset)) string {
	t.Helper()
	reset := statement.Reset{
		Host: r.InstanceID, Assignment: r.Assignment, BootID: "boot-1", Level: statement.LevelSlate, Result: statement.ResultClean,
		Checked: []statement.Check{{Name: "directories"}}, BegunAt: start, EndedAt: now,
	}
	if change != nil {
		change(&reset)
	}
	envelope, err := statement.Sign(reset, key)
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

func TestStatementOfACleanHost(t *testing.T) {
	facts, policy := cleanFacts(t, nil)
	d := lifecycle.Decide(facts, now, policy)
	if d.Action != lifecycle.ActionPool || d.Statement != facts.Report.Statement {
		t.Fatalf("%s, statement %q", outcome(d), d.Statement)
	}
	next, err := lifecycle.Apply(facts.Record, d, now, policy)
	if err != nil || next.AgentKey != itsKey {
		t.Errorf("record has key %q, error %v", next.AgentKey, err)
	}
}

func TestStatementsThatDoNotCount(t *testing.T) {
	tests := map[string]struct {
		change func(t *testing.T, f *lifecycle.Facts)
		want   string // what the reason says; empty: the host is pooled, without a statement
	}{
		"an older agent": {func(_ *testing.T, f *lifecycle.Facts) {
			f.Record.AgentKey, f.Report.Statement = "", ""
		}, ""},
		"its key came after its first job": {func(_ *testing.T, f *lifecycle.Facts) {
			f.Record.AgentKey, f.Report.AgentKey = "", itsKey
		}, ""},
		"none": {func(_ *testing.T, f *lifecycle.Facts) { f.Report.Statement = "" }, "there is none, and its agent has key " + itsKey.ID()},
		"another key signs": {func(t *testing.T, f *lifecycle.Facts) {
			f.Report.Statement = signedReset(t, f.Record, agentKey(2), nil)
		}, "its signature is not of key " + itsKey.ID()},
		"the agent reports another key": {func(_ *testing.T, f *lifecycle.Facts) { f.Report.AgentKey = anotherKey },
			"its agent has key " + anotherKey.ID() + " and had " + itsKey.ID() + " before its first job"},
		"of the last reset": {func(t *testing.T, f *lifecycle.Facts) {
			f.Report.Statement = signedReset(t, f.Record, agentKey(1), func(r *statement.Reset) { r.Assignment -= 2 })
		}, "it is about assignment 5"},
		"of another host": {func(t *testing.T, f *lifecycle.Facts) {
			f.Report.Statement = signedReset(t, f.Record, agentKey(1), func(r *statement.Reset) { r.Host = "i-2" })
		}, "it is about another host"},
		"of another boot": {func(_ *testing.T, f *lifecycle.Facts) { f.Report.BootID = "boot-2" }, "it is from another boot"},
		"with a finding": {func(t *testing.T, f *lifecycle.Facts) {
			f.Report.Statement = signedReset(t, f.Record, agentKey(1), func(r *statement.Reset) { r.Check("files", 1) })
		}, "it does not say that the host is clean"},
		"no statement": {func(_ *testing.T, f *lifecycle.Facts) { f.Report.Statement = "\x1b[31m" }, "it is no DSSE envelope"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			facts, policy := cleanFacts(t, nil)
			tt.change(t, &facts)
			d := lifecycle.Decide(facts, now, policy)
			if d.Statement != "" || d.AgentKey != "" {
				t.Errorf("statement %q and key %q", d.Statement, d.AgentKey)
			}
			if tt.want == "" {
				if d.Action != lifecycle.ActionPool {
					t.Errorf("%s, want pool", outcome(d))
				}
				return
			}
			if d.Action != lifecycle.ActionTerminate || d.Code != lifecycle.ReasonStatementRefused || !strings.HasSuffix(d.Reason, tt.want) {
				t.Errorf("%s, want an end that says %q", outcome(d), tt.want)
			}
		})
	}
}

// A host binds its agent's key once, before its first job.
func TestKeyIsBoundBeforeTheFirstJob(t *testing.T) {
	tests := map[string]struct {
		scene  scene
		change func(f *lifecycle.Facts)
		want   statement.Key
	}{
		"it becomes ready":       {scene{host: "created", answer: "UD_REG_OK"}, nil, anotherKey},
		"a job runs already":     {scene{host: "created", answer: "UD_REG_OK", busy: "busy"}, nil, ""},
		"a job was begun":        {scene{host: "created", answer: "UD_REG_OK"}, func(f *lifecycle.Facts) { f.Report.Jobs = 1 }, ""},
		"it has a key":           {scene{host: "created", answer: "UD_REG_OK"}, func(f *lifecycle.Facts) { f.Record.AgentKey = itsKey }, itsKey},
		"it has served before":   {scene{host: "claimed", answer: "UD_REG_OK"}, nil, ""},
		"it is prepared and new": {scene{host: "releasing, fresh", answer: "UD_REMOVE_REG_OK"}, nil, anotherKey},
		"it is clean again":      {scene{host: "releasing", answer: "UD_REMOVE_REG_OK"}, nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.scene.deadline, tt.scene.beat, tt.scene.request = "ahead", "fresh", "wanted"
			facts, policy := tt.scene.facts()
			facts.Report.AgentKey = anotherKey
			if tt.change != nil {
				tt.change(&facts)
			}
			d := lifecycle.Decide(facts, now, policy)
			next, err := lifecycle.Apply(facts.Record, d, now, policy)
			if err != nil || d.Action != lifecycle.ActionReady && d.Action != lifecycle.ActionPool || next.AgentKey != tt.want {
				t.Errorf("%s, key %q, error %v; want key %q", outcome(d), next.AgentKey, err, tt.want)
			}
		})
	}
}

func TestStatementOfAFailedCleanUp(t *testing.T) {
	for name, tt := range map[string]struct {
		key    byte
		change func(*statement.Reset)
		counts bool
	}{
		"by its key":            {1, func(*statement.Reset) {}, true},
		"by another":            {2, func(*statement.Reset) {}, false},
		"of another host":       {1, func(r *statement.Reset) { r.Host = "i-2" }, false},
		"of another assignment": {1, func(r *statement.Reset) { r.Assignment++ }, false},
	} {
		t.Run(name, func(t *testing.T) {
			facts, policy := cleanFacts(t, nil)
			facts.Report.Signal, facts.Report.Cause = lifecycle.SignalRemoveRegFailed, lifecycle.CauseHost
			facts.Report.Statement = signedReset(t, facts.Record, agentKey(tt.key), func(r *statement.Reset) { r.Result = statement.ResultFailed; tt.change(r) })
			d := lifecycle.Decide(facts, now, policy)
			if d.Action != lifecycle.ActionTerminate || d.Code != lifecycle.ReasonCleanUpFailed || (d.Statement != "") != tt.counts {
				t.Errorf("%s, statement %q", outcome(d), d.Statement)
			}
		})
	}
}
