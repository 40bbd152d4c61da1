// Command testrun runs all tests of the module: make test. It builds the
// programs that tests start, starts the emulators of AWS, runs the two passes
// that package testrun describes, and checks that between them they left
// nothing out. At the end it prints which packages took longest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// errFailed: the output says what failed.
var errFailed = errors.New("the tests failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, errFailed) {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if err != nil {
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("testrun", flag.ContinueOnError)
	fresh := flags.Bool("fresh", false, "reuse no result of an earlier run")
	packages := flags.String("packages", "./...", "which `packages` to test, as go list takes them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	begin := time.Now()
	all, err := list(ctx, strings.Fields(*packages))
	if err != nil {
		return err
	}
	environ, stop, err := prepare(ctx, slices.ContainsFunc(all, func(p testPackage) bool { return p.asksAWS }))
	if err != nil {
		return err
	}
	defer stop()
	goFlags := flags.Args()
	if *fresh {
		goFlags = append([]string{"-count=1"}, goFlags...)
	}
	fmt.Printf("the programs, and the emulators if they are needed, are ready after %v\n", time.Since(begin).Round(time.Second))

	passes := plan(all)
	var running sync.WaitGroup
	for _, p := range passes {
		running.Go(func() { p.err = p.run(ctx, goFlags, environ) })
	}
	running.Wait()
	return report(all, passes, time.Since(begin))
}

// bin is where the programs are built, below the root of the module, which is
// where go test must find them to notice that they changed.
const bin = "bin/test"

// rareCollection lets the heap of a test grow to five times what is live before it is
// collected. That takes a third of the processor time from tests that make many small
// worlds (internal/fleet: 46 s to 27 s), and at most some tens of megabytes more. A
// GOGC of the caller's environment counts instead.
const rareCollection = "GOGC=400"

// prepare builds the programs and starts the emulators, if any test may need
// them, and returns the variables that hand them over.
func prepare(ctx context.Context, emulated bool) (environ []string, stop func(), err error) {
	dir, err := filepath.Abs(bin)
	if err != nil {
		return nil, nil, err
	}
	if err := build(dir); err != nil {
		return nil, nil, err
	}
	var emulators []string
	stop = func() {}
	if emulated {
		if emulators, stop, err = startEmulators(ctx); err != nil {
			return nil, nil, err
		}
	}
	return slices.Concat([]string{rareCollection}, os.Environ(), emulators, []string{
		testrun.BinVariable + "=" + dir,
		// The tests of the stand-in know nothing of this module's packages.
		"REMUDA_TEST_RUNNER=" + filepath.Join(testrun.System.In(dir), "standin-runner"),
		testrun.RunVariable + "=" + strconv.FormatInt(time.Now().UnixNano(), 36),
	}), stop, nil
}
