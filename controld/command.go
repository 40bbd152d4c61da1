package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/remuda-ci/remuda/internal/telemetry"
)

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
		{"config check", "[--aws | --dev] FILE", "say all that is wrong with a configuration", configCheck},
		{"plan", "--snapshot FILE [--output json|table]", "say what a scale-down would do with a fleet described in a file, and why", plan},
		{"snapshot", "{--config FILE | --state-dir DIR} [--output FILE]", "write the fleet as it is now, in the format that plan reads", snapshot},
		{"iam", "--config FILE [--role ROLE] [--account ID] | --explain", "print the IAM policy of a role, made from a configuration", iamPolicy},
		{"github-standin", "--addr ADDR --state-dir DIR", "run the GitHub stand-in alone", githubStandin},
		{"version", "", "print version, commit and Go version", version},
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
