package lifecycle

import (
	"cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// This file judges the signed statements of resets. A host binds the public key of its agent before its first job. From then on a
// clean-up counts only with a statement by that key, so a job that can write its host's report, and cannot read the key, cannot say
// that its host is clean.

// newKey is the key that the host binds now; empty: it has one, or a job may have run on it. Then its agent could be another's.
func (v *decider) newKey() statement.Key {
	r, p := v.Record, v.Report
	if r.AgentKey != "" || p == nil || p.Busy || p.Jobs > 0 || r.State != StateCreated && !r.Fresh() {
		return ""
	}
	return p.AgentKey
}

// proof is the statement of the clean-up of a host that says that it is clean, or why it is refused. A host without a key has none:
// its agent is an older one, or a job ran before the key was known.
func (v *decider) proof() (envelope string, refused Reason) {
	r, p := v.Record, v.Report
	key := cmp.Or(r.AgentKey, v.newKey())
	switch {
	case key == "" || r.AgentKey == "" && p.Statement == "":
		return "", Reason{}
	case p.AgentKey != "" && p.AgentKey != key:
		return "", statementRefused("its agent has key %s and had %s before its first job", p.AgentKey.ID(), key.ID())
	case p.Statement == "":
		return "", statementRefused("there is none, and its agent has key %s", key.ID())
	}
	reset, err := statement.Open(p.Statement, key)
	if err == nil {
		err = reset.Shows(r.InstanceID, r.Assignment, p.BootID)
	}
	if err != nil {
		return "", statementRefused("%v", err)
	}
	return p.Statement, Reason{}
}

// proofOfFailure is the statement of a clean-up that failed; empty: there is none that counts.
func (v *decider) proofOfFailure() string {
	reset, err := statement.Open(v.Report.Statement, v.Record.AgentKey)
	if err != nil || reset.Host != v.Record.InstanceID || reset.Assignment != v.Record.Assignment {
		return ""
	}
	return v.Report.Statement
}

func statementRefused(format string, values ...any) Reason {
	return Because(ReasonStatementRefused, "the statement of its clean-up does not count: "+format, values...)
}
