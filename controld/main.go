// Command controld is the control daemon: it hands hosts to workflow runs, takes
// them back and puts them down. This package parses, wires and stops; the logic
// is in internal/fleet.
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

// The exit codes beside 0 and that of any other error.
const (
	exitFailure = 1
	exitUsage   = 2
	// exitConfiguration is EX_CONFIG of sysexits.h: starting again will not
	// help (RestartPreventExitStatus=78).
	exitConfiguration = 78
)

// stopWithin is how long a daemon may take after a signal: it has promised 10 s
// to whoever sent it, who may kill what is left without asking.
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

// errTold ends the program with exitFailure after it has said why.
var errTold = errors.New("told")

// usageError is a command line that cannot be understood.
type usageError struct {
	text string
	// hint says where to read on.
	hint string
}

func (e *usageError) Error() string { return e.text + "\n" + e.hint }

// configError is an error that only another configuration can mend.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

// wrongConfig is a configuration that could not be read. What is wrong with its
// content has lines of its own.
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
