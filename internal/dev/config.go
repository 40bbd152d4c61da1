package dev

import (
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/config"
)

// Configuration is the result of the flags and the file. The file is read over dev's own
// defaults, and then dev puts its own values in place. The URL of GitHub is not known before
// the stand-in listens. Nothing is written.
func (o *Options) Configuration(programs Programs) (*config.Config, error) {
	tokenFile := o.tokenFile()
	c := config.Default()
	if o.Config != "" {
		data, err := os.ReadFile(o.Config)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		has := sectionsOf(data) // the rules require some, and a file may have none
		if !has.credentials() {
			c.GitHub.TokenFile = tokenFile
		}
		if has.jobPools() && has.Webhooks == nil {
			c.Webhooks = &config.Webhooks{SecretFile: o.webhookSecret()}
		}
		c.ForDev = true
		if err := c.Read(o.Config, data); err != nil {
			return nil, err
		}
	}
	c.GRPC = config.GRPC{Addr: o.GRPCAddr}
	c.HTTP.Addr = o.HTTPAddr
	c.Store.SQLite.Path = filepath.Join(o.StateDir, "remuda.db")
	c.Compute.Process.Directory = o.StateDir
	c.Compute.Process.Agentd = programs.Agentd
	c.Compute.Process.Runner = filepath.Join(o.StateDir, "runner")
	c.GitHub = config.GitHub{
		TokenFile: tokenFile, Scope: c.GitHub.Scope, RunnerGroup: c.GitHub.RunnerGroup, Repositories: c.GitHub.Repositories,
	}
	return c, nil
}

// sections are the parts of a configuration file for which dev has defaults of its own.
type sections struct {
	GitHub struct {
		TokenEnv string `yaml:"token_env"`
		Apps     []any  `yaml:"apps"`
	} `yaml:"github"`
	Webhooks map[string]any `yaml:"webhooks"`
	Pools    map[string]struct {
		Jobs map[string]any `yaml:"jobs"`
	} `yaml:"pools"`
}

// sectionsOf looks into a file that may be wrong in any way. What is wrong is reported when the file is read.
func sectionsOf(data []byte) sections {
	var s sections
	if yaml.Unmarshal(data, &s) != nil {
		return sections{}
	}
	return s
}

// credentials reports whether the file has credentials other than a token_file.
func (s sections) credentials() bool { return s.GitHub.TokenEnv != "" || len(s.GitHub.Apps) > 0 }

// jobPools reports whether there are job pools, which learn of jobs only by webhooks.
func (s sections) jobPools() bool {
	for _, p := range s.Pools {
		if p.Jobs != nil {
			return true
		}
	}
	return false
}
