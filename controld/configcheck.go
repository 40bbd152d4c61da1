package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

// configCheck prints one line for each thing that is wrong with a file, or says
// that all is well and what is dangerous all the same.
func configCheck(_ context.Context, call *call) error {
	files, err := call.parse(1, nil)
	if err != nil {
		return err
	}
	c, err := config.Load(files[0])
	var wrong *strictyaml.Error
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(call.stdout, wrong)
		return errTold
	case err != nil:
		return err
	}
	fmt.Fprintf(call.stdout, "%s: ok\n", files[0])
	for _, warning := range c.Warnings() {
		fmt.Fprintf(call.stdout, "%s: warning: %s\n", files[0], warning)
	}
	return nil
}
