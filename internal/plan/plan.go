// Package plan reads a snapshot file and prints what a scale-down would do with its fleet, for `controld plan`. The decisions are those of
// internal/policy; here is only the file before them and the text after them.
package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"text/tabwriter"
	_ "time/tzdata" // so that a period means the same on a machine without time zones

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Read decides about the fleet of a snapshot file; "-" is standard input.
func Read(path string, stdin io.Reader) ([]policy.HostVerdict, error) {
	s, err := Snapshot(path, stdin)
	if err != nil {
		return nil, err
	}
	return s.Plan(), nil
}

// Snapshot reads a snapshot file; "-" is standard input.
func Snapshot(path string, stdin io.Reader) (policy.Snapshot, error) {
	data, err := read(path, stdin)
	if err != nil {
		return policy.Snapshot{}, fmt.Errorf("read snapshot: %w", err)
	}
	s, err := policy.ParseSnapshot(data)
	if err != nil {
		return policy.Snapshot{}, fmt.Errorf("read snapshot %s:\n%w", path, err)
	}
	return s, nil
}

// read reads at most one byte more than a snapshot may have.
func read(path string, stdin io.Reader) ([]byte, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		stdin = f
	}
	data, err := io.ReadAll(io.LimitReader(stdin, policy.MaxSnapshot+1))
	if errors.Is(err, syscall.EISDIR) {
		err = fmt.Errorf("%w; name a file in it", err)
	}
	return data, err
}

// Decision is a verdict as docs/interfaces.md#the-snapshot-that-plan-reads has it.
type Decision struct {
	InstanceID string           `json:"instance_id"`
	Action     lifecycle.Action `json:"action"`
	Reason     string           `json:"reason"`
}

// Decisions are the verdicts for programs, in the same order.
func Decisions(verdicts []policy.HostVerdict) []Decision {
	decisions := []Decision{}
	for _, v := range verdicts {
		decisions = append(decisions, Decision{v.InstanceID, v.Action, v.Reason})
	}
	return decisions
}

// JSON prints the verdicts for programs.
func JSON(w io.Writer, verdicts []policy.HostVerdict) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(Decisions(verdicts))
}

// Table prints the verdicts for people.
func Table(w io.Writer, verdicts []policy.HostVerdict) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "INSTANCE\tACTION\tREASON")
	for _, v := range verdicts {
		fmt.Fprintf(t, "%s\t%s\t%s\n", v.InstanceID, v.Action, v.Reason)
	}
	return t.Flush()
}
