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
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/telemetry"
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
	case "-version", "--version":
		args = append([]string{"version"}, args[1:]...)
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

// command is one subcommand.
type command struct {
	name    string // one word or two
	args    string // what follows it
	summary string
	run     func(ctx context.Context, c *call) error
}

// commands lists all commands, in the order in which people meet them.
func commands() []command {
	return []command{
		{"dev", "[flags]", "run everything on this machine: hosts are processes, GitHub a stand-in", runDev},
		{"serve", "--config FILE", "run the daemon", serve},
		{"config check", "[--aws | --dev | --elsewhere] FILE", "say everything for which serve would not start with a configuration", configCheck},
		{"plan", "--snapshot FILE [--output json|table]", "say what a scale-down would do with a fleet described in a file, and why", plan},
		{"snapshot", "{--config FILE | --state-dir DIR} [--output FILE]", "write the fleet as it is now, in the format that plan and remuda --snapshot read", snapshot},
		{"iam", "{--config FILE [--account ID] | --format cloudformation} [--role ROLE] | --explain", "print the IAM policy of a role", iamPolicy},
		{"ca init", "--dir DIR --host NAMES [flags]", "make a private authority, and controld's certificate", caInit},
		{"ca issue", "--dir DIR [flags] NAME", "make the client certificate of an operator, or renew controld's", caIssue},
		{"github-standin", "--addr ADDR --state-dir DIR [flags]", "run the GitHub stand-in alone", githubStandin},
		{"version", "", "print version, commit and Go version; also as --version", version},
	}
}

func (c command) words() int { return len(strings.Fields(c.name)) }

// find returns the command that the arguments begin with.
func find(args []string) (command, error) {
	for _, c := range commands() {
		if len(args) >= c.words() && strings.Join(args[:c.words()], " ") == c.name {
			return c, nil
		}
	}
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return command{}, &usageError{fmt.Sprintf("%.80q is not a command", strings.Join(args, " ")), "commands: " + strings.Join(names, ", ")}
}

// usage lists the commands, with their summaries in one column.
func usage() string {
	width := 0
	for _, c := range commands() {
		width = max(width, len(c.line()))
	}
	var b strings.Builder
	b.WriteString("controld hands hosts to workflow runs and takes them back.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  controld %-*s  %s\n", width, c.line(), c.summary)
	}
	b.WriteString("\n`controld COMMAND --help` lists the flags of a command.\n")
	return b.String()
}

func (c command) line() string { return strings.TrimSpace(c.name + " " + c.args) }

// call is one call of a command.
type call struct {
	command
	args           []string // after the command's name
	stdout, stderr io.Writer
}

// parse reads the flags that define declares, and exactly so many arguments
// after them. A call that only asks for help is answered, with flag.ErrHelp.
func (c *call) parse(operands int, define func(*flag.FlagSet)) ([]string, error) {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if define != nil {
		define(flags)
	}
	err := flags.Parse(c.args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(c.stdout, "usage: controld %s\n\n%s\n%s", c.line(), c.summary, flagUsage(flags))
		return nil, flag.ErrHelp
	case err != nil:
		return nil, c.misused("%v", err)
	case flags.NArg() > operands:
		return nil, c.misused("%.80q is one argument too many", flags.Arg(operands))
	case flags.NArg() < operands:
		return nil, c.misused("%s needs %s", c.name, c.command.args)
	}
	return flags.Args(), nil
}

// flagUsage lists flags as the documentation writes them, with two dashes, and their
// descriptions in one column.
func flagUsage(flags *flag.FlagSet) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	flags.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		if f.DefValue != "" {
			text += " (" + f.DefValue + ")"
		}
		fmt.Fprintf(w, "  --%s %s\t%s\n", f.Name, value, strings.ReplaceAll(text, "\n", "\n\t"))
	})
	_ = w.Flush() // a strings.Builder takes everything
	if b.Len() > 0 {
		return "\n" + b.String()
	}
	return ""
}

// misused is the error for a command line of this command that cannot be understood.
func (c *call) misused(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), fmt.Sprintf("usage: controld %s (`controld %s --help` says more)", c.line(), c.name)}
}

func version(_ context.Context, c *call) error {
	if _, err := c.parse(0, nil); err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, telemetry.VersionLine("controld"))
	return nil
}
