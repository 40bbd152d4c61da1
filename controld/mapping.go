package main

import (
	"github.com/hashicorp/go-hclog"
	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// limits are the zones and the capacity of the local stand-in for a cloud.
func limits(c *config.Config) placement.Limits {
	p := c.Compute.Process
	return placement.Limits{Zones: p.Zones, Capacity: p.Capacity, SpotCapacity: p.SpotCapacity}
}

// sells asks the catalogue, which has every instance type.
func sells(c *config.Config) func(fleet.Class, ...[]string) bool {
	return func(class fleet.Class, patterns ...[]string) bool {
		return limits(c).Sells(class.CPU, class.MemoryMiB, patterns...)
	}
}

func processOptions(c *config.Config, log hclog.Logger) process.Options {
	p := c.Compute.Process
	return process.Options{
		Root: p.Directory, AgentPath: p.Agentd, BootDelay: p.BootDelay,
		AgentConfig: func(m lifecycle.Machine, hostDir string) ([]byte, error) { return agentConfig(c, m, hostDir) },
		Limits:      limits(c),
		Log:         log,
	}
}

// agentSettings is the configuration file of a host's agentd, as far as it differs from agentd's defaults.
type agentSettings struct {
	InstanceID string `yaml:"instance_id"`
	HostKey    string `yaml:"host_key"`
	Directory  string `yaml:"directory"`
	Store      struct {
		SQLite struct {
			Path string `yaml:"path"`
		} `yaml:"sqlite"`
	} `yaml:"store"`
	Runner struct {
		Distribution string            `yaml:"distribution"`
		Env          map[string]string `yaml:"env,omitempty"`
	} `yaml:"runner"`
	PreRunner struct {
		Script string `yaml:"script,omitempty"`
	} `yaml:"pre_runner,omitempty"`
	Caches    []cache.OnHost `yaml:"caches,omitempty"`
	LogLevel  string         `yaml:"log_level"`
	LogFormat string         `yaml:"log_format"`
}

// agentConfig is the configuration of a host's agentd. The host writes only into a directory
// of its own below hostDir, which is removed with it.
func agentConfig(c *config.Config, m lifecycle.Machine, hostDir string) ([]byte, error) {
	s := agentSettings{
		InstanceID: m.InstanceID, HostKey: m.HostKey, Directory: hostDir + "/host",
		LogLevel: string(c.Log.Level), LogFormat: string(c.Log.Format),
	}
	s.Store.SQLite.Path = c.Store.SQLite.Path
	s.Runner.Distribution, s.Runner.Env = c.Compute.Process.Runner, c.Compute.Process.Environment
	s.PreRunner.Script = c.Pools[m.Pool].PreRunner
	s.Caches = cache.OnHosts(c.Pools[m.Pool].CacheSpecs())
	return yaml.Marshal(s)
}
