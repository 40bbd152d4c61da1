// Command agentd is the host agent: it keeps one host in step with its record.
//
// It exits with 0 once it has powered its host off, with 78 (EX_CONFIG of
// sysexits.h) when its configuration can never work, and with 1 otherwise, also
// when it was told to stop: then whoever supervises it starts it again, and it
// finds its runner as it left it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/remuda-ci/remuda/internal/telemetry"
)

const (
	exitFailure       = 1
	exitConfiguration = 78
)

// The agent shares its host with jobs, which need the memory more: its heap
// is a few MiB, and collecting it twice as often as usual costs nothing.
const (
	gcPercent   = 50
	memoryLimit = 24 << 20 // bytes; soft
)

// configError is an error that only another configuration can mend.
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
	if errors.As(err, &config) {
		return exitConfiguration
	}
	return exitFailure
}

func command(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("agentd", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), "usage: agentd --config FILE\n       agentd version\n")
	}
	path := flags.String("config", "", "the configuration file")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return &configError{err}
	}
	if flags.NArg() == 1 && flags.Arg(0) == "version" {
		fmt.Println(telemetry.VersionLine("agentd"))
		return nil
	}
	if flags.NArg() > 0 || *path == "" {
		flags.Usage()
		return &configError{errors.New("no configuration file is given")}
	}
	c, err := readConfig(*path)
	if err != nil {
		return &configError{err}
	}
	saveMemory()
	return run(ctx, c)
}

// saveMemory leaves alone what the environment says.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
