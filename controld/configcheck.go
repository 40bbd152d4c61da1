package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/dev"
	"github.com/remuda-ci/remuda/internal/inputs"
)

// checkFlags are those of config check.
type checkFlags struct {
	aws, dev, elsewhere bool
	output              string
}

func (o *checkFlags) define(f *flag.FlagSet) {
	f.BoolVar(&o.aws, "aws", false, "look in the account too: what Refresh would create or change, what controld may do, and the quotas")
	f.StringVar(&o.output, "output", "table", "with --aws, how the account is reported: `table` for people, json for programs")
	f.BoolVar(&o.dev, "dev", false, "the file is one for controld dev --config, which has defaults of its own")
	f.BoolVar(&o.elsewhere, "elsewhere", false, "the file is for another machine: do not look for the files, programs, variables and credentials that it names")
}

// check refuses flags that mean nothing together.
func (o *checkFlags) check(c *call) error {
	switch {
	case o.output != "table" && o.output != "json":
		return c.misused("--output %.40q is neither table nor json", o.output)
	case o.output == "json" && !o.aws:
		return c.misused("--output json is for --aws")
	case o.aws && o.elsewhere:
		return c.misused("--aws needs what the file names, which --elsewhere leaves out")
	}
	return nil
}

// configCheck prints one line for each thing for which serve would not start with a file, or "ok" and a line for each
// warning. It reads what serve reads, by the same code, and so it must run on the machine of serve, or with --elsewhere.
// With --aws it also checks the account. With --dev it checks the file over the defaults of `controld dev`.
func configCheck(ctx context.Context, call *call) error {
	var o checkFlags
	files, err := call.parse(1, o.define)
	if err != nil {
		return err
	}
	if err := o.check(call); err != nil {
		return err
	}
	path := files[0]
	if c, err := config.Load(path); o.aws && err == nil && c.Backend() != config.BackendAWS {
		return call.misused("--aws: %s has no aws section", path)
	}
	c, in, err := o.load(path)
	if err == nil && !o.dev && !o.elsewhere {
		err = rehearse(ctx, c, in)
	}
	if err != nil {
		return o.refuse(call, path, err)
	}
	words := call.stdout
	if o.output == "json" {
		words = call.stderr // the document alone is on standard output
	}
	fmt.Fprintf(words, "%s: ok\n", path)
	for _, warning := range slices.Concat(c.Warnings(), in.Warnings, o.unreadable(c)) {
		fmt.Fprintf(words, "%s: warning: %s\n", path, warning)
	}
	if !o.aws {
		return nil
	}
	return checkAWS(ctx, c, in, call, o.output)
}

// load reads the file, and what it names, as the command reads it for which it is.
func (o *checkFlags) load(path string) (*config.Config, *inputs.Inputs, error) {
	in := &inputs.Inputs{}
	rules := []config.Rule{in.Rule}
	if o.elsewhere {
		rules = nil
	}
	load := config.Load
	if o.dev {
		load = loadForDev
	}
	c, err := load(path, rules...)
	return c, in, err
}

// refuse prints what is wrong with a file.
func (o *checkFlags) refuse(call *call, path string, err error) error {
	var wrong *strictyaml.Error
	var refused *configError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(call.stdout, wrong)
	case errors.As(err, &refused):
		fmt.Fprintf(call.stdout, "%s: %v\n", path, refused)
	default:
		return err
	}
	if o.dev {
		return errTold
	}
	_, content := config.Load(path)
	if _, err := loadForDev(path); content != nil && err == nil {
		fmt.Fprintf(call.stdout, "%s: `controld dev` takes it, with what it has by itself: for that, check it with --dev\n", path)
	}
	return errTold
}

// unreadable warns root of files that only root reads: controld.service runs as a user of its own.
func (o *checkFlags) unreadable(c *config.Config) (warnings []string) {
	if os.Geteuid() != 0 || o.dev || o.elsewhere {
		return nil
	}
	for _, path := range c.OutsideCredentials() {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o004 == 0 {
			warnings = append(warnings, fmt.Sprintf("%s has mode %04o: root can read it, and controld.service, which runs as a user of its own, perhaps not; put it into %s",
				path, info.Mode().Perm(), config.CredentialsDir))
		}
	}
	return warnings
}

// loadForDev reads a file as dev does.
func loadForDev(path string, rules ...config.Rule) (*config.Config, error) {
	o, err := dev.OptionsFor(path, "")
	if err != nil {
		return nil, err
	}
	return devConfiguration(&o, dev.Programs{}, rules...)
}
