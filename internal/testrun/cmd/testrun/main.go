// Command testrun runs all tests of the module: make test. It builds the
// programs that tests start, starts the emulators of AWS, runs the two passes
// that package testrun describes, and checks that between them they left
// nothing out. At the end it prints which packages took longest.
package main

import (
	"cmp"
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
	if os.Getenv("GOGC") == "" {
		if err := os.Setenv("GOGC", rareCollection); err != nil {
			return err
		}
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	all, environ, err := prepare(ctx, strings.Fields(*packages))
	if err != nil {
		return err
	}
	handedOver := ""
	if slices.ContainsFunc(all, func(p testPackage) bool { return p.asksAWS }) {
		emulators, err := startEmulators(ctx, fail)
		if err != nil {
			return err
		}
		defer emulators.end()
		handedOver = emulators.dir
		environ = append(environ, emulatorsVariable+"="+emulators.dir)
	}
	goFlags := flags.Args()
	if *fresh {
		goFlags = append([]string{"-count=1"}, goFlags...)
	}
	fmt.Printf("the programs are ready after %v\n", time.Since(begin).Round(time.Second))

	passes := plan(all)
	var running sync.WaitGroup
	for _, p := range passes {
		running.Go(func() { p.err = p.run(ctx, goFlags, environ) })
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(
		report(all, passes, time.Since(begin)),
		reportRequests(handedOver, complete(all, strings.Fields(*packages), goFlags, passes)),
	)
}

// bin is where the programs are built, below the root of the module, which is
// where go test must find them to notice that they changed.
const bin = "bin/test"

// rareCollection is the GOGC of the tests and of what builds them. It lets the heap grow
// to five times what is live before it is collected. That takes a third of the processor
// time from tests that make many small worlds (internal/fleet: 46 s to 27 s), and at most
// some tens of megabytes more. A GOGC of the caller's environment counts instead.
const rareCollection = "400"

// prepare lists the packages that have tests and builds the programs at the same time. It
// returns the variables that hand over the programs.
func prepare(ctx context.Context, patterns []string) (all []testPackage, environ []string, err error) {
	dir, err := filepath.Abs(bin)
	if err != nil {
		return nil, nil, err
	}
	var listing sync.WaitGroup
	var listErr error
	listing.Go(func() { all, listErr = list(ctx, patterns) })
	err = build(dir)
	listing.Wait()
	if err := errors.Join(err, listErr); err != nil {
		return nil, nil, err
	}
	return all, append(os.Environ(),
		testrun.BinVariable+"="+dir,
		// The tests of the stand-in know nothing of this module's packages.
		"REMUDA_TEST_RUNNER="+filepath.Join(testrun.System.In(dir), "standin-runner"),
		testrun.RunVariable+"="+strconv.FormatInt(time.Now().UnixNano(), 36),
		// Property tests draw the same lives in every run. scripts/soak draws others.
		"RAPID_SEED="+cmp.Or(os.Getenv("RAPID_SEED"), "1"),
	), nil
}
