package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Statement is a signed statement of a reset as `remuda why --statement` writes it and `remuda verify-reset` reads it.
type Statement struct {
	InstanceID string `json:"instance_id"`
	Assignment int64  `json:"assignment"`
	// PublicKey is the key of the host's agent as controld knows it, 32 bytes of ed25519 in base64.
	PublicKey statement.Key `json:"public_key"`
	// Envelope is the DSSE envelope, as it was signed.
	Envelope json.RawMessage `json:"envelope"`
}

// Statements are the signed statements of an explanation, a line of JSON for each.
func Statements(resp *remudav1.ExplainRunResponse) (string, error) {
	var b strings.Builder
	for _, s := range resp.GetStatements() {
		line, err := json.Marshal(Statement{s.GetInstanceId(), s.GetAssignment(), statement.KeyFrom(s.GetPublicKey()), json.RawMessage(s.GetEnvelope())})
		if err != nil {
			return "", fmt.Errorf("statement of host %s: %w", s.GetInstanceId(), err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// Verified says what a statement says that key has signed.
func Verified(r statement.Reset, key statement.Key) string {
	after := "before its first run"
	if r.RunBefore != "" {
		after = "after run " + r.RunBefore
	}
	text := fmt.Sprintf("%s, assignment %d: %s %s by level %s at %s, %s with %s; signed by key %s",
		r.Host, r.Assignment, r.Result, after, r.Level, r.EndedAt.UTC().Format(time.RFC3339),
		plural.Of(len(r.Checked), "check", "checks"), plural.Of(r.Findings(), "finding", "findings"), key.ID())
	if r.KeyWithinReach {
		text += ", which jobs of the host could read"
	}
	return table.Printable(text)
}
