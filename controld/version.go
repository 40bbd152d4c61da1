package main

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/telemetry"
)

func version(_ context.Context, c *call) error {
	if _, err := c.parse(0, nil); err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, telemetry.VersionLine("controld"))
	return nil
}
