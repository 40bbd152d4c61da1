// Command controld is the control daemon: it gives hosts to workflow runs, takes them back
// and ends them. This package parses command lines, wires the parts and stops them; the logic
// is in internal/fleet and the rooms around it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

// The exit codes other than 0.
const (
	exitFailure = 1
	exitUsage   = 2
	// exitConfiguration is EX_CONFIG of sysexits.h: a restart will not help (RestartPreventExitStatus=78).
	exitConfiguration = 78
)

// stopWithin is how long a daemon may take to stop after a signal. The documented limit is
// 10 s, after which a supervisor may kill it.
const stopWithin = 9500 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	done := make(chan error, 1)
	go func() { done <- run(ctx, os.Args[1:], os.Stdout, os.Stderr) }()
	err := wait(ctx, done)
	if err != nil && !errors.Is(err, errTold) {
		fmt.Fprintln(os.Stderr, "controld:", err)
	}
	os.Exit(exitCode(err))
}

func wait(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(stopWithin):
		return fmt.Errorf("not stopped %s after the signal; what was under way is left to the next start", stopWithin)
	}
}

// errTold ends the program with exitFailure after the reason was printed.
var errTold = errors.New("told")

// usageError is a command line that cannot be understood.
type usageError struct {
	text string
	// hint says where to read on.
	hint string
}

func (e *usageError) Error() string { return e.text + "\n" + e.hint }

// configError is an error that only a change of the configuration can fix.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

// wrongConfig is the error for a configuration that could not be read. Each error in its
// content has a line of its own.
func wrongConfig(err error) error {
	var wrong *strictyaml.Error
	if errors.As(err, &wrong) {
		err = fmt.Errorf("the configuration is wrong:\n%w", err)
	}
	return &configError{err}
}

func exitCode(err error) int {
	var usage *usageError
	var config *configError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &config):
		return exitConfiguration
	}
	return exitFailure
}

// run runs one command until it is done or ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage())
		return &usageError{"no command is given", "run `controld help` for the commands"}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage())
		return nil
	}
	c, err := find(args)
	if err != nil {
		return err
	}
	err = c.run(ctx, &call{command: c, args: args[c.words():], stdout: stdout, stderr: stderr})
	stopped := ctx.Err() != nil && errors.Is(err, context.Canceled)
	if stopped || errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}
