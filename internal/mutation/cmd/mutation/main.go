// Command mutation measures how well the tests of packages test them: see package mutation.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/remuda-ci/remuda/internal/mutation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	o := mutation.Options{Progress: os.Stderr}
	tests := flags.String("tests", "", "packages whose tests run too, with spaces between them")
	flags.Func("skip", "tests that do not run, as a regular expression", func(s string) (err error) {
		o.Skip, err = regexp.Compile(s)
		return err
	})
	flags.Func("match", "only mutants whose change this regular expression matches, as a survivor's after a test was added", func(s string) (err error) {
		o.Match, err = regexp.Compile(s)
		return err
	})
	flags.IntVar(&o.Sample, "sample", 0, "how many mutants are tried; 0 is all")
	flags.Uint64Var(&o.Seed, "seed", 1, "decides which mutants are drawn")
	equivalents := flags.String("equivalents", "", "a file with the mutants that make no difference")
	output := flags.String("output", "table", "table or json")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.Patterns, o.Tests = flags.Args(), strings.Fields(*tests)
	if len(o.Patterns) == 0 {
		return errors.New("name packages: ./internal/policy/... is those of policy")
	}
	if *output != "table" && *output != "json" {
		return fmt.Errorf("-output is table or json, and not %q", *output)
	}
	var err error
	if o.Equivalents, err = read(*equivalents); err != nil {
		return err
	}
	report, err := mutation.Run(ctx, o)
	if report == nil {
		return err
	}
	if *output == "json" {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return errors.Join(err, encoder.Encode(report))
	}
	return errors.Join(err, report.Print(os.Stdout))
}

func read(path string) ([]mutation.Equivalent, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mutation.ReadEquivalents(f)
}
