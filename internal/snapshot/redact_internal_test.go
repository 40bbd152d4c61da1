package snapshot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestRedact: wherever a row has a secret, it is removed, and what has none stays.
func TestRedact(t *testing.T) {
	t.Parallel()
	type inner struct{ S lifecycle.Secret }
	row := struct {
		Plain   string
		Secret  lifecycle.Secret
		Empty   lifecycle.Secret
		Pointer *inner
		None    *inner
		List    []inner
		Names   []lifecycle.Secret
		inner
	}{Plain: "plain", Secret: "s3cret", Pointer: &inner{"s3cret"}, List: []inner{{"s3cret"}}, Names: []lifecycle.Secret{"s3cret", ""}}
	redact(&row)
	text, err := json.Marshal(row)
	if err != nil || strings.Contains(string(text), "s3cret") || strings.Count(string(text), string(removed.Reveal())) != 4 || row.Plain != "plain" || row.Empty != "" {
		t.Errorf("%s, %v", text, err)
	}
}
