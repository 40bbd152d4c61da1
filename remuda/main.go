// Command remuda is for people: it shows a fleet, says why a run waits or a host is here, and steers. This package has the
// command lines; what they do is in internal/cli.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/table"
	"github.com/remuda-ci/remuda/internal/snapshot"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	app := &cli.App{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		InTerminal: isatty.IsTerminal(os.Stdin.Fd()), OutTerminal: isatty.IsTerminal(os.Stdout.Fd()), ErrTerminal: isatty.IsTerminal(os.Stderr.Fd()),
		Getenv: os.Getenv, Now: time.Now, ReadSnapshot: readSnapshot, Globals: cli.Globals{Output: output.Table},
	}
	os.Exit(int(run(ctx, app, os.Args[1:])))
}

// readSnapshot serves the fleet of a snapshot file in this process.
func readSnapshot(path string, stdin io.Reader) (cli.Snapshot, error) {
	o, err := snapshot.Read(path, stdin)
	if err != nil {
		return cli.Snapshot{}, err
	}
	return cli.Snapshot{Conn: o, At: o.At, Lacks: o.Lacks}, nil
}

// run runs one command line and reports its error.
func run(ctx context.Context, app *cli.App, args []string) failure.Code {
	root := newRoot(app)
	root.SetArgs(args)
	root.SetIn(app.Stdin)
	root.SetOut(app.Stdout)
	root.SetErr(app.Stderr)
	command, err := root.ExecuteContextC(ctx)
	var known *failure.Error
	if err != nil && !errors.As(err, &known) { // cobra has not understood the command line
		known = failure.Misused("%w", err)
	}
	if known == nil {
		return failure.OK
	}
	if known.Code == failure.Usage && known.Remedy == "" {
		known.Remedy = fmt.Sprintf("`%s --help` says more.", command.CommandPath())
	}
	report(app.Stderr, known)
	return known.Code
}

// printable is a text without what commands a terminal, except the separators, which lines and columns have.
func printable(text string, separators ...string) string {
	if len(separators) == 0 {
		return table.Printable(text)
	}
	parts := strings.Split(text, separators[0])
	for i, part := range parts {
		parts[i] = printable(part, separators[1:]...)
	}
	return strings.Join(parts, separators[0])
}

// report prints an error. What a server says in it does not command the terminal.
func report(w io.Writer, err *failure.Error) {
	fmt.Fprintln(w, "remuda:", printable(err.Error(), "\n", "\t"))
	if err.Remedy != "" {
		fmt.Fprintln(w, err.Remedy)
	}
}
