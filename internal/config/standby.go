package config

import (
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// standby is how the clean hosts of a pool wait for a run: as it says, or listening where that is possible.
func (c *Config) standby(p Pool) lifecycle.StandbyMode {
	switch {
	case p.Standby != "":
		return p.Standby
	case c.cannotListen(p) != "":
		return lifecycle.StandbyClean
	}
	return lifecycle.StandbyListening
}

// cannotListen is why a host of the pool cannot register before a run has claimed it; empty: it can. The registration
// belongs to one repository or organization, serves any number of jobs, and gets the labels of the run alone.
func (c *Config) cannotListen(p Pool) string {
	switch {
	case p.Reuse == lifecycle.ReuseNone:
		return "with reuse: none no host waits for another run"
	case p.Reuse == lifecycle.ReuseSameOwner && c.GitHub.Scope != ScopeOrganization:
		return "with reuse: same-owner a host waits for runs of several repositories, and at repository scope it can register with one alone"
	case p.Jobs != nil:
		return "each host of a job pool registers for one job"
	case p.DefaultLabels:
		return "with default_labels GitHub would give jobs to a host that no run has claimed"
	}
	return ""
}

func (c *Config) validateStandby(at strictyaml.Place, p Pool) {
	if why := c.cannotListen(p); p.Standby == lifecycle.StandbyListening && why != "" {
		at.At("standby").Errorf("is listening, and %s; leave it out, or write clean", why)
	}
}
