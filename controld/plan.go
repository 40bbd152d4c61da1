package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	scaledown "github.com/remuda-ci/remuda/internal/plan"
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
	verdicts, err := scaledown.Read(path, os.Stdin)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(call.stdout)
	if err := write(out, verdicts); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

var planOutputs = map[string]func(io.Writer, []policy.HostVerdict) error{"json": scaledown.JSON, "table": scaledown.Table}
