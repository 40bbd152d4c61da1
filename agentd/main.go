// Command agentd is the host agent: it keeps one host in step with its record.
//
// It exits with 0 once it has powered off its host, with 78 (EX_CONFIG of sysexits.h) if
// its configuration can never work, and with 1 otherwise, also after SIGTERM. Its
// supervisor restarts it then, and it finds its runner as it left it.
//
// agentd check-fork has exit statuses of its own: see package forkcheck.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/remuda-ci/remuda/internal/host/forkcheck"
	"github.com/remuda-ci/remuda/internal/host/units"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

const (
	exitFailure       = 1
	exitConfiguration = 78
)

// The agent shares its host with jobs, which need the memory more. Its heap has a few MiB,
// and collecting it twice as often as usual costs nothing.
const (
	gcPercent   = 50
	memoryLimit = 24 << 20 // bytes; soft
)

// configError is an error that only another configuration can fix.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := command(ctx, os.Args[1:])
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "agentd:", err)
	os.Exit(exitCode(err))
}

func exitCode(err error) int {
	var config *configError
	switch {
	case errors.As(err, &config):
		return exitConfiguration
	case errors.Is(err, forkcheck.ErrFork), errors.Is(err, forkcheck.ErrUnreadable):
		return forkcheck.ExitCode(err)
	}
	return exitFailure
}

const usage = `usage: agentd --config FILE
       agentd version, or --version

Units of agentd's own run, as root or as the runner's user:
       agentd prepare --config FILE
       agentd attach --config FILE --assignment N --of REPOSITORY|OWNER [--drop KEY,…]
       agentd clean --config FILE --assignment N
       agentd check-metadata

The job-started hook's, in a job:
       agentd check-fork
`

// order is the command line of agentd.
type order struct {
	what       string // empty for running the agent
	config     string
	assignment int64
	of         string // whose caches are attached
	drop       string // the keys of caches that are deleted before, with commas between
}

func command(ctx context.Context, args []string) error {
	o, err := readOrder(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return &configError{err}
	}
	switch o.what {
	case "version":
		fmt.Println(telemetry.VersionLine("agentd"))
		return nil
	case "check-metadata":
		return units.CheckMetadata(ctx)
	case "check-fork":
		return forkcheck.FromEnvironment()
	}
	c, err := awaitConfig(ctx, o.config)
	if err != nil {
		return &configError{err}
	}
	switch o.what {
	case "":
		saveMemory() // what else agentd does is short, and no job runs beside it
		return run(ctx, c)
	case "prepare":
		o.assignment = 0 // it follows none
	}
	// What follows runs as root, in units that the agent starts: see package host.
	h, err := c.host(o.assignment)
	switch {
	case err != nil:
		return &configError{err}
	case o.what == "prepare":
		return h.PrepareNow(ctx)
	case o.what == "attach":
		return h.AttachNow(ctx, o.assignment, o.of, strings.FieldsFunc(o.drop, func(r rune) bool { return r == ',' }))
	}
	return h.CleanNow(ctx, o.assignment)
}

// readOrder reads a command, and flags before or after it.
func readOrder(args []string) (order, error) {
	var o order
	flags := flag.NewFlagSet("agentd", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage) }
	flags.StringVar(&o.config, "config", "", "the configuration file")
	version := flags.Bool("version", false, "print the version")
	flags.Int64Var(&o.assignment, "assignment", 0, "the assignment that ended or begins")
	flags.StringVar(&o.of, "of", "", "the repository or owner whose caches are attached")
	flags.StringVar(&o.drop, "drop", "", "the keys of caches that are deleted before, with commas between")
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		o.what = flags.Arg(0)
		err = flags.Parse(flags.Args()[1:])
	}
	if err != nil {
		return o, err
	}
	if *version && o.what == "" {
		o.what = "version"
	}
	if err := o.check(flags.Args()); err != nil {
		flags.Usage()
		return o, err
	}
	return o, nil
}

func (o order) check(rest []string) error {
	needsConfig, needsAssignment := true, false
	switch o.what {
	case "version", "check-metadata", "check-fork":
		needsConfig = false
	case "", "prepare":
	case "clean", "attach":
		needsAssignment = true
	default:
		return fmt.Errorf("unknown command %q", o.what)
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case needsConfig && o.config == "":
		return errors.New("no configuration file is given")
	case needsAssignment && o.assignment <= 0:
		return errors.New("no assignment is given")
	}
	return nil
}

// saveMemory sets the limits of the garbage collector, unless the environment does.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
