package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/dev"
)

// configCheck prints one line for each error in a configuration file, or "ok" and a line for each warning. It
// reads the token files of services as serve does at start, except that a missing one is a warning, since a
// configuration may be checked on another machine. With --aws it also checks the account. With --dev it
// checks the file over the defaults of `controld dev`.
func configCheck(ctx context.Context, call *call) error {
	var inAWS, ofDev bool
	var output string
	files, err := call.parse(1, func(f *flag.FlagSet) {
		f.BoolVar(&inAWS, "aws", false, "look in the account too: what Refresh would create or change, what controld may do, and the quotas")
		f.StringVar(&output, "output", "table", "with --aws, how the account is reported: `table` for people, json for programs")
		f.BoolVar(&ofDev, "dev", false, "the file is one for controld dev --config, which has defaults of its own")
	})
	if err != nil {
		return err
	}
	if err := checkOutput(call, output, inAWS); err != nil {
		return err
	}
	load := config.Load
	if ofDev {
		load = loadForDev
	}
	c, err := load(files[0])
	var wrong *strictyaml.Error
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(call.stdout, wrong)
		if _, err := loadForDev(files[0]); err == nil {
			fmt.Fprintf(call.stdout, "%s: `controld dev` takes it, with what it has by itself: for that, check it with --dev\n", files[0])
		}
		return errTold
	case err != nil:
		return err
	}
	warnings, wrongFiles := checkTokens(c)
	var bad []error
	for _, err := range wrongFiles {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			warnings = append(warnings, fmt.Sprintf("%v; controld does not start where it cannot read that file", err))
		} else {
			bad = append(bad, err)
		}
	}
	for _, err := range bad {
		fmt.Fprintf(call.stdout, "%s: %v\n", files[0], err)
	}
	if len(bad) > 0 {
		return errTold
	}
	words := call.stdout
	if output == "json" {
		words = call.stderr // the document alone is on standard output
	}
	fmt.Fprintf(words, "%s: ok\n", files[0])
	for _, warning := range append(c.Warnings(), warnings...) {
		fmt.Fprintf(words, "%s: warning: %s\n", files[0], warning)
	}
	switch {
	case !inAWS:
		return nil
	case c.Backend() != config.BackendAWS:
		return call.misused("--aws: %s has no aws section", files[0])
	}
	return checkAWS(ctx, c, call, output)
}

// checkOutput refuses an --output that means nothing.
func checkOutput(call *call, output string, inAWS bool) error {
	switch {
	case output != "table" && output != "json":
		return call.misused("--output %.40q is neither table nor json", output)
	case output == "json" && !inAWS:
		return call.misused("--output json is for --aws")
	}
	return nil
}

// loadForDev reads a file as dev does.
func loadForDev(path string) (*config.Config, error) {
	o, err := dev.OptionsFor(path, "")
	if err != nil {
		return nil, err
	}
	return devConfiguration(&o, dev.Programs{})
}
