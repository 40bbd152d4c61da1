package findings

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes of a program other than 0.
const (
	ExitRefuted = 1
	ExitFailed  = 2
)

// Program runs a program until SIGINT or SIGTERM, writes its error and returns its exit code.
func Program(name string, run func(ctx context.Context, args []string, out, progress io.Writer) (int, error)) int {
	// A write to a pipe without a reader would end the program before its clean-up: Ctrl-C ends the tee of
	// "first-contact … 2>&1 | tee log" too. The signal is caught, since processes that it starts would inherit it if it was ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	return code
}

// ExitCode returns the exit code of a run beside its error.
func ExitCode(list []Finding, err error) (int, error) {
	switch {
	case err != nil:
		return ExitFailed, err
	case len(RefutedOf(list)) > 0:
		return ExitRefuted, nil
	}
	return 0, nil
}
