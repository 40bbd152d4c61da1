package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/config"
	standinrunner "github.com/remuda-ci/remuda/internal/githubsim/runner"
)

// configuration is what the flags and the file come to. The file is read over
// dev's own defaults, and what dev decides is then put in its place. The URL of
// GitHub is not known before the stand-in listens. Nothing is written.
func (o *devOptions) configuration(programs programs) (*config.Config, error) {
	tokenFile := o.tokenFile()
	c := config.Default()
	if o.config != "" {
		data, err := os.ReadFile(o.config)
		if err != nil {
			return nil, &configError{fmt.Errorf("--config: %w", err)}
		}
		has := sectionsOf(data) // the rules want some, and a file may have none
		if !has.credentials() {
			c.GitHub.TokenFile = tokenFile
		}
		if has.jobPools() && has.Webhooks == nil {
			c.Webhooks = &config.Webhooks{SecretFile: o.webhookSecret()}
		}
		c.ForDev = true
		if err := c.Read(o.config, data); err != nil {
			return nil, wrongConfig(err)
		}
	}
	c.GRPC = config.GRPC{Addr: o.grpcAddr}
	c.HTTP.Addr = o.httpAddr
	c.Store.SQLite.Path = filepath.Join(o.stateDir, "remuda.db")
	c.Compute.Process.Directory = o.stateDir
	c.Compute.Process.Agentd = programs.agentd
	c.Compute.Process.Runner = filepath.Join(o.stateDir, "runner")
	c.GitHub = config.GitHub{
		TokenFile: tokenFile, Scope: c.GitHub.Scope, RunnerGroup: c.GitHub.RunnerGroup, Repositories: c.GitHub.Repositories,
	}
	return c, nil
}

// sections are those of a file that dev has defaults of its own for.
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

// sectionsOf looks into a file that may be wrong in any way: what is wrong is
// told when the file is read.
func sectionsOf(data []byte) sections {
	var s sections
	if yaml.Unmarshal(data, &s) != nil {
		return sections{}
	}
	return s
}

// credentials reports whether there are some that are no token_file.
func (s sections) credentials() bool { return s.GitHub.TokenEnv != "" || len(s.GitHub.Apps) > 0 }

// jobPools reports whether there are pools that nothing but webhooks tell of
// jobs.
func (s sections) jobPools() bool {
	for _, p := range s.Pools {
		if p.Jobs != nil {
			return true
		}
	}
	return false
}

// tokenFile is that of the stand-in, which takes any token.
func (o *devOptions) tokenFile() string { return filepath.Join(o.stateDir, "github-token") }

// webhookSecret is for a file that has job pools and no secret: it is dev's own
// and stays in the state directory.
func (o *devOptions) webhookSecret() string { return filepath.Join(o.stateDir, "webhook-secret") }

// githubDir is that of the stand-in.
func (o *devOptions) githubDir() string { return filepath.Join(o.stateDir, "github") }

// writeSecrets makes dev's own, as far as the configuration names them.
func (o *devOptions) writeSecrets(c *config.Config) error {
	err := os.WriteFile(o.tokenFile(), []byte("standin\n"), 0o600)
	if err == nil && c.Webhooks != nil && c.Webhooks.SecretFile == o.webhookSecret() {
		if _, missing := os.Stat(o.webhookSecret()); missing != nil {
			err = os.WriteFile(o.webhookSecret(), []byte(rand.Text()+"\n"), 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("--state-dir %s: %w", o.stateDir, err)
	}
	return nil
}

// devWith are the options of a dev with a configuration and a state directory,
// each of which may be empty.
func devWith(config, stateDir string) (_ devOptions, err error) {
	var o devOptions
	o.define(flag.NewFlagSet("", flag.ContinueOnError))
	o.config = config
	if stateDir != "" {
		o.stateDir = stateDir
	}
	o.stateDir, err = filepath.Abs(o.stateDir)
	return o, err
}

// programs are the paths of the programs that dev runs.
type programs struct{ controld, agentd, runner string }

// findPrograms finds them beside controld, where make build puts them.
func findPrograms() (programs, error) {
	self, err := os.Executable()
	if err != nil {
		return programs{}, fmt.Errorf("find controld itself: %w", err)
	}
	bin := filepath.Dir(self)
	p := programs{controld: self, agentd: filepath.Join(bin, "agentd"), runner: filepath.Join(bin, "standin-runner")}
	for _, path := range []string{p.agentd, p.runner} {
		if _, err := os.Stat(path); err != nil {
			return programs{}, fmt.Errorf("find the program beside controld: %w; run make build", err)
		}
	}
	return p, nil
}

// layOutRunner makes the distribution that hosts take their runner from, once
// for each build: hosts of an earlier dev may be taking theirs.
func layOutRunner(dir, program string) error {
	laid, laidErr := os.Stat(filepath.Join(dir, "bin", "Runner.Worker")) // the last thing that is laid
	built, err := os.Stat(program)
	if err != nil {
		return fmt.Errorf("lay out runner: %w", err)
	}
	if laidErr == nil && os.SameFile(laid, built) {
		return nil
	}
	if laidErr != nil && !errors.Is(laidErr, os.ErrNotExist) {
		return fmt.Errorf("lay out runner: %w", laidErr)
	}
	return standinrunner.LayOut(dir, program)
}
