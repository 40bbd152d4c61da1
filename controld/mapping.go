package main

import (
	"fmt"

	"github.com/hashicorp/go-hclog"
	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/policy"
)

// pools are the pools of the configuration, in the types of internal/fleet.
func pools(c *config.Config) (map[string]fleet.Pool, error) {
	pools := map[string]fleet.Pool{}
	for name, p := range c.Pools {
		warm, err := warmPool(p.Ahead())
		if err != nil {
			return nil, fmt.Errorf("pool %s: warm: %w", name, err)
		}
		stopped, err := warmPool(p.Stopped.Fresh())
		if err != nil {
			return nil, fmt.Errorf("pool %s: stopped: %w", name, err)
		}
		if stopped != nil {
			stopped.Policy.Key = "stopped.minimum"
		}
		times := c.Policy(name)
		if c.Backend() == config.BackendLocal {
			times.Cloud = "the process table" // the hosts are processes of this machine
		}
		pools[name] = fleet.Pool{
			Name: name, ResourceClasses: c.PoolResourceClasses(name), UsageClasses: c.PoolUsageClasses(name),
			InstanceTypes: p.InstanceTypes, Privileged: p.Privileged, DefaultLabels: p.DefaultLabels, RerunInterrupted: p.RerunInterrupted, Policy: times,
			Caches: p.CacheSpecs(), Maximum: p.Maximum, Warm: warm, Stopped: stopped, SpotBreaker: policy.SpotBreaker(p.SpotBreaker),
		}
	}
	return pools, nil
}

// warmPool is what a pool launches ahead of need, or nil for nothing.
func warmPool(w *config.Warm) (*fleet.WarmPool, error) {
	if w == nil {
		return nil, nil
	}
	policy, err := w.Policy()
	if err != nil {
		return nil, err
	}
	return &fleet.WarmPool{Policy: policy, Spec: w.Spec()}, nil
}

func classes(c *config.Config) map[string]fleet.Class {
	classes := map[string]fleet.Class{}
	for name, class := range c.ResourceClasses {
		classes[name] = fleet.Class(class)
	}
	return classes
}

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

func timing(s config.Sweeps) fleet.Timing {
	return fleet.Timing{Due: s.Due, Liveness: s.Liveness, Cloud: s.Cloud, Services: s.Services, Warm: s.Warm, Budgets: s.Budgets, Lease: s.Lease, Grace: s.Grace}
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
