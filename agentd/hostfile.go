package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

// hostFile is what the user data of a host's launch template tells its agent: where the host belongs.
// cloud-init writes the file at boot, before agentd starts. It is JSON, which is YAML too.
type hostFile struct {
	Region string `yaml:"region"`
	Prefix string `yaml:"prefix"`
	// Pool is only logged.
	Pool string `yaml:"pool"`
	// PreRunner is the path of the pool's pre-runner script; empty for none.
	PreRunner string `yaml:"pre_runner"`
	// PostRelease is the path of its post-release script; empty for none.
	PostRelease string `yaml:"post_release"`
	// Privileged says that jobs may become root.
	Privileged bool `yaml:"privileged"`
	// JobsReadMetadata says that the pool lets its jobs read the instance metadata.
	JobsReadMetadata bool `yaml:"jobs_read_metadata"`
}

// Validate reports every rule that the file breaks.
func (h *hostFile) Validate(root strictyaml.Place) {
	matches(root.At("prefix"), h.Prefix, prefixName, "1 to 20 of a-z 0-9 and -, a letter first")
	matches(root.At("region"), h.Region, regionName, "a region such as eu-west-1")
	optionalPath(root.At("pre_runner"), h.PreRunner)
	optionalPath(root.At("post_release"), h.PostRelease)
}

// readHostFile fills in what the configuration leaves out. The configuration takes precedence.
func (c *config) readHostFile() error {
	if c.HostFile != "" {
		data, err := os.ReadFile(c.HostFile)
		if err != nil {
			return fmt.Errorf("read host_file, which user data writes at boot: %w", err)
		}
		if err := strictyaml.Decode(c.HostFile, data, &c.Host); err != nil {
			return err
		}
	}
	c.PreRunner.Script = cmp.Or(c.PreRunner.Script, c.Host.PreRunner)
	c.PostRelease.Script = cmp.Or(c.PostRelease.Script, c.Host.PostRelease)
	if d := c.Store.DynamoDB; d != nil {
		d.Prefix = cmp.Or(d.Prefix, c.Host.Prefix, defaultPrefix)
		d.Region = cmp.Or(d.Region, c.Host.Region)
	}
	return nil
}

// defaultPrefix is the table prefix of a deployment without a name.
const defaultPrefix = "remuda"
