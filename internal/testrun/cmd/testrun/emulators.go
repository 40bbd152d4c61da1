package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// startEmulators starts what stands in for AWS. It ends when stop is called,
// and also if this process is killed: its standard input ends then.
func startEmulators(ctx context.Context) (environ []string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"run"}, testrun.BuildFlags, []string{"./internal/awstest/cmd/emulators"})...)
	cmd.Env = append(os.Environ(), testrun.BuildEnviron...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	// An interrupt closes the standard input, and nothing is killed before its children.
	cmd.Cancel = in.Close
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() {
		_ = in.Close() // it may be closed already
		_ = cmd.Wait() // it does nothing that could fail now
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "" {
			return environ, stop, nil
		}
		environ = append(environ, lines.Text())
	}
	_ = in.Close()
	return nil, nil, errors.Join(fmt.Errorf("start the emulators: they ended"), cmd.Wait())
}
