package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"
	"text/tabwriter"
	_ "time/tzdata" // so that a period means the same on a machine without time zones

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// plan prints what a scale-down would do with the fleet of a snapshot. It makes no call.
func plan(_ context.Context, call *call) error {
	var path, output string
	if _, err := call.parse(0, func(f *flag.FlagSet) {
		f.StringVar(&path, "snapshot", "", "the `FILE` that describes the fleet, as `controld snapshot` writes it; - for standard input")
		f.StringVar(&output, "output", "table", "`table` for people, json for programs")
	}); err != nil {
		return err
	}
	write, known := planOutputs[output]
	switch {
	case path == "":
		return call.misused("--snapshot is required")
	case !known:
		return call.misused("--output %.40q is neither table nor json", output)
	}
	data, err := readSnapshot(path)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	s, err := policy.ParseSnapshot(data)
	if err != nil {
		return fmt.Errorf("read snapshot %s:\n%w", path, err)
	}
	out := bufio.NewWriter(call.stdout)
	if err := write(out, s.Plan()); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// readSnapshot reads at most one byte more than a snapshot may have.
func readSnapshot(path string) ([]byte, error) {
	f := os.Stdin
	if path != "-" {
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
	}
	data, err := io.ReadAll(io.LimitReader(f, policy.MaxSnapshot+1))
	if errors.Is(err, syscall.EISDIR) {
		err = fmt.Errorf("%w; name a file in it", err)
	}
	return data, err
}

var planOutputs = map[string]func(io.Writer, []policy.HostVerdict) error{"json": planJSON, "table": planTable}

// planDecision is a verdict as docs/interfaces.md#the-snapshot-that-plan-reads has it.
type planDecision struct {
	InstanceID string           `json:"instance_id"`
	Action     lifecycle.Action `json:"action"`
	Reason     string           `json:"reason"`
}

func planJSON(w io.Writer, verdicts []policy.HostVerdict) error {
	decisions := []planDecision{}
	for _, v := range verdicts {
		decisions = append(decisions, planDecision{v.InstanceID, v.Action, v.Reason})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(decisions)
}

func planTable(w io.Writer, verdicts []policy.HostVerdict) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "INSTANCE\tACTION\tREASON")
	for _, v := range verdicts {
		fmt.Fprintf(t, "%s\t%s\t%s\n", v.InstanceID, v.Action, v.Reason)
	}
	return t.Flush()
}
