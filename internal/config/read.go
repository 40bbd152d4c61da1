package config

import (
	"fmt"
	"os"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Load reads a file over the defaults. What is wrong with its content comes
// back as a *strictyaml.Error, all at once.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data)
}

// Parse reads the content of a file, known by name in errors, over the defaults.
func Parse(name string, data []byte) (*Config, error) {
	c := Default()
	if err := c.Read(name, data); err != nil {
		return nil, err
	}
	return c, nil
}

// Read reads the content of a file over c, which may hold other defaults than
// Default's. After an error c is of no use.
func (c *Config) Read(name string, data []byte) error {
	return strictyaml.Decode(name, data, c,
		strictyaml.Values(lifecycle.Reuses...),
		strictyaml.Values(lifecycle.Drifts...),
		strictyaml.Values(lifecycle.UsageClasses...),
		strictyaml.Values(policy.Roles...),
		strictyaml.Values(policy.Evictions...),
		strictyaml.Values(LogLevels...),
		strictyaml.Values(LogFormats...),
		strictyaml.Values(Scopes...),
	)
}

// Check applies the rules to a configuration that was changed since it was
// read, by flags for instance; name says by what.
func (c *Config) Check(name string) error { return strictyaml.Check(name, c) }
