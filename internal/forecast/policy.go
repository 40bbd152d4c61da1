package forecast

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/price"
	"github.com/remuda-ci/remuda/internal/replay"
	"github.com/remuda-ci/remuda/internal/settings"
)

// archX86 is the architecture of the hosts of a policy that names no images: that of GitHub's own runners.
const archX86 = "x86_64"

// LoadPolicy reads a policy from a file: a configuration of controld, whole, or with what is about pools, limits and prices alone. The error
// says all that is wrong, with its place.
func LoadPolicy(path string) (replay.Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return replay.Policy{}, fmt.Errorf("read policy: %w", err)
	}
	return ParsePolicy(path, data)
}

// ParsePolicy reads the content of a policy file, known by name in errors.
func ParsePolicy(name string, data []byte) (replay.Policy, error) {
	c := config.Default()
	lend(c, data)
	if err := c.Read(name, data); err != nil {
		return replay.Policy{}, err
	}
	return policyOf(c)
}

// lend gives a configuration what the rules ask for and a replay has no use for, unless the file has it.
func lend(c *config.Config, data []byte) {
	var has struct {
		GitHub struct {
			TokenFile string `yaml:"token_file"`
			TokenEnv  string `yaml:"token_env"`
			Apps      []any  `yaml:"apps"`
		} `yaml:"github"`
		Webhooks any `yaml:"webhooks"`
		Pools    map[string]struct {
			Jobs any `yaml:"jobs"`
		} `yaml:"pools"`
	}
	if yaml.Unmarshal(data, &has) != nil {
		return // what is wrong is reported when the file is read
	}
	if has.GitHub.TokenFile == "" && has.GitHub.TokenEnv == "" && len(has.GitHub.Apps) == 0 {
		c.GitHub.TokenFile = unused
	}
	for _, p := range has.Pools {
		if p.Jobs != nil && has.Webhooks == nil {
			c.Webhooks = &config.Webhooks{SecretFile: unused}
		}
	}
}

// unused is the path of a file that nothing reads.
var unused = filepath.Join(string(filepath.Separator), "nonexistent")

// policyOf is a configuration in the words of a replay.
func policyOf(c *config.Config) (replay.Policy, error) {
	pools, err := settings.Pools(c)
	if err != nil {
		return replay.Policy{}, err
	}
	p := replay.Policy{
		Pools: map[string]replay.Pool{}, Classes: settings.Classes(c), Limits: c.Limits.Policy(), ScaleDownEvery: c.Sweeps.ScaleDown,
		Scope: settings.Scope(c), Timing: settings.Timing(c.Sweeps), Prices: c.Cost.List(region(c)), Archs: archs(c),
	}
	if c.ScaleDown != nil {
		down, err := c.ScaleDown.Policy()
		if err != nil {
			return replay.Policy{}, fmt.Errorf("scale_down: %w", err)
		}
		p.ScaleDown = &down
	}
	for name, pool := range pools {
		of := replay.Pool{Pool: pool, Spec: spec(c, name)}
		if j := c.Pools[name].Jobs; j != nil {
			of.Labels, of.Repositories = j.Labels, j.Repositories
			if of.Maximum == nil || *of.Maximum > j.Maximum {
				of.Maximum = &j.Maximum
			}
			if j.RegisteredMinimum {
				of.Registered = j.Minimum
			}
		}
		p.Pools[name] = of
	}
	return p, nil
}

// spec is what a job of a pool asks for: what the section of its jobs says, or of its warm hosts, or the first that the pool offers.
func spec(c *config.Config, pool string) lifecycle.Spec {
	p := c.Pools[pool]
	switch {
	case p.Jobs != nil:
		return p.Jobs.Spec()
	case p.Warm != nil:
		return p.Warm.Spec()
	}
	s := lifecycle.Spec{}
	if classes := c.PoolResourceClasses(pool); !slices.Contains(classes, fleet.DefaultResourceClass) {
		s.ResourceClass = classes[0]
	}
	if usage := c.PoolUsageClasses(pool); !slices.Contains(usage, lifecycle.UsageOnDemand) {
		s.UsageClass = usage[0]
	}
	return s
}

// region is where the machines would be: that of the built-in prices, if the policy names none.
func region(c *config.Config) string {
	if c.AWS == nil || c.AWS.Region == "" {
		return price.BuiltInRegion
	}
	return c.AWS.Region
}

// archs are the architectures that there are images for.
func archs(c *config.Config) []string {
	if c.AWS == nil || len(c.AWS.EC2.Images) == 0 {
		return []string{archX86}
	}
	return slices.Sorted(maps.Keys(c.AWS.EC2.Images))
}
