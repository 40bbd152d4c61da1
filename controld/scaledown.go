package main

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/instrument"
)

// scaleDown is the scale-down of the configuration, or nil if no idle host of a run is to be ended.
func (d *daemon) scaleDown(c *config.Config) (*fleet.ScaleDown, error) {
	if c.ScaleDown == nil {
		return nil, nil
	}
	policy, err := c.ScaleDown.Policy()
	if err != nil {
		return nil, &configError{fmt.Errorf("scale_down: %w", err)}
	}
	return &fleet.ScaleDown{
		Policy: policy, GitHub: instrument.Registrations{Registrations: d.hub, Calls: d.calls("github")}, Scope: scope(c), Every: c.Sweeps.ScaleDown,
	}, nil
}
