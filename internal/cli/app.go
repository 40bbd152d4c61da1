package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/contexts"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/table"
)

// DefaultTimeout bounds a call that does not wait for hosts. A list of 10,000 hosts takes about a second.
const DefaultTimeout = 30 * time.Second

// App is the outside of one call of the command.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// InTerminal, OutTerminal and ErrTerminal say what a person sees: questions, colors, and progress on one line.
	InTerminal, OutTerminal, ErrTerminal bool
	Getenv                               func(string) string
	Now                                  func() time.Time
	// ReadSnapshot opens the fleet of a snapshot file; "-" is standard input.
	ReadSnapshot func(path string, stdin io.Reader) (Snapshot, error)
	Globals

	snapshot *Snapshot // once it is read; nil: controld is asked
}

// Globals are the flags of every command.
type Globals struct {
	// Context is the name of a context; empty: the current one.
	Context string
	// Address is a controld to call without a context, or another one by the context that --context names.
	Address string
	// Timeout bounds each call; 0: the default of the command.
	Timeout time.Duration
	// Output is how answers are printed.
	Output output.Format
	// Snapshot is a file whose fleet is asked in place of controld; empty: none is.
	Snapshot string
	// Watch is how often an answer is printed again; 0: once.
	Watch time.Duration
}

// Color reports whether stdout gets colors: a terminal that knows them, of a person who wants them (no-color.org).
func (a *App) Color() bool {
	return a.OutTerminal && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
}

func (a *App) wide() bool { return a.Output == output.Wide }

// print prints a table, or says on stderr that there is nothing.
func (a *App) print(t table.Table, nothing string) error {
	if len(t.Rows) == 0 {
		a.note("%s", nothing)
		return nil
	}
	return t.Write(a.Stdout, a.Color())
}

// note tells a person something that is not the answer.
func (a *App) note(format string, args ...any) { fmt.Fprintf(a.Stderr, format+"\n", args...) }

// contextsFile is the path of the contexts and what they are.
func (a *App) contextsFile() (string, contexts.File, error) {
	path, err := contexts.Path(a.Getenv)
	if err != nil {
		return "", contexts.File{}, failure.Of("", err)
	}
	file, err := contexts.Load(path)
	return path, file, err
}

// clear begins a screen.
const clear = "\x1b[H\x1b[2J"

// repeat shows something once, or with Watch until ctx ends. The first look must succeed; a later one that fails is
// reported, and the next is awaited.
func (a *App) repeat(ctx context.Context, show func(context.Context) error) error {
	if a.Watch == 0 {
		return show(ctx)
	}
	tick := time.NewTicker(a.Watch)
	defer tick.Stop()
	for first := true; ; first = false {
		switch {
		case a.OutTerminal && !a.Output.ForPrograms():
			fmt.Fprint(a.Stdout, clear)
		case !first && !a.Output.ForPrograms():
			fmt.Fprintln(a.Stdout)
		}
		err := show(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			a.note("%s: %v", a.Now().Format(time.TimeOnly), err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
