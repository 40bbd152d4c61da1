package config

import (
	"strings"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// standby is how the clean hosts of a pool wait for a run: as it says, or listening where that is possible.
func (c *Config) standby(p Pool) lifecycle.StandbyMode {
	switch {
	case p.Standby != "":
		return p.Standby
	case len(c.cannotListen(p)) > 0:
		return lifecycle.StandbyClean
	}
	return lifecycle.StandbyListening
}

// cannotListen has every reason why a host of the pool cannot register before a run has claimed it; none: it can. The registration
// belongs to one repository or organization, serves any number of jobs, and gets the labels of the run alone.
func (c *Config) cannotListen(p Pool) []string {
	var reasons []string
	switch {
	case p.Reuse == lifecycle.ReuseNone:
		reasons = append(reasons, "with reuse: none no host waits for another run")
	case p.Reuse == lifecycle.ReuseSameOwner && c.GitHub.Scope != ScopeOrganization:
		reasons = append(reasons, "with reuse: same-owner a host waits for runs of several repositories, and at repository scope it can register with one alone")
	}
	if p.Reset == statement.LevelRootVolume {
		reasons = append(reasons, "with reset: root-volume a host waits for the run of any repository")
	}
	if p.Jobs != nil {
		reasons = append(reasons, "each host of a job pool registers for one job")
	}
	if p.Stopped != nil {
		reasons = append(reasons, "with stopped a host waits without a registration, so that its machine can be stopped")
	}
	if p.DefaultLabels {
		reasons = append(reasons, "with default_labels GitHub would give jobs to a host that no run has claimed")
	}
	return reasons
}

func (c *Config) validateStandby(at strictyaml.Place, p Pool) {
	if why := c.cannotListen(p); p.Standby == lifecycle.StandbyListening && len(why) > 0 {
		at.At("standby").Errorf("is listening, and %s; leave it out, or write clean", strings.Join(why, ", and "))
	}
}
