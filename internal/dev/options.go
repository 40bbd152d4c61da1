// Package dev is what `controld dev` needs beside the daemon: its flags, the configuration
// that they make, its state directory, and the process of the GitHub stand-in. Everything
// runs on one machine and is reachable from that machine only.
package dev

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/config"
)

// Options are the flags of controld dev.
type Options struct {
	GRPCAddr, HTTPAddr, GitHubAddr string
	// StateDir is absolute after Complete, since hosts and stand-in have working directories of their own.
	StateDir string
	// GitHub is how slow the stand-in is, if dev starts it.
	GitHub StandinTimes
	// BootTime is how long a host takes to boot; 0: what the configuration says.
	BootTime time.Duration
	// Config is the path of a configuration file; empty: there is none.
	Config string
}

// Define declares the flags, with their defaults.
func (o *Options) Define(f *flag.FlagSet) {
	f.StringVar(&o.GRPCAddr, "grpc-addr", "127.0.0.1:7443", "where callers reach the fleet; port 0 of an `ADDR` takes a free one")
	f.StringVar(&o.HTTPAddr, "http-addr", "127.0.0.1:7080", "where health and metrics are served, an `ADDR`")
	f.StringVar(&o.GitHubAddr, "github-addr", "127.0.0.1:7081", "where the GitHub stand-in listens, an `ADDR`")
	f.StringVar(&o.StateDir, "state-dir", filepath.Join(".state", "dev"), "the `DIR` of store, hosts and stand-in, with which the next start goes on")
	f.DurationVar(&o.BootTime, "boot-time", 0, "how long a host takes to boot, a `TIME`, so that cold and warm starts differ;\n"+
		"with 0 it is compute.process.boot_delay of the configuration, which is no time at all by default")
	o.GitHub.Define(f)
	f.StringVar(&o.Config, "config", "", "a configuration `FILE`: pools, classes, timeouts, sweeps, boot delay, zones, capacity, log;\n"+
		"addresses, TLS, paths, and the URL and token of GitHub are those of dev, whatever it says")
}

// OptionsFor are the options of a dev with a configuration file and a state directory. An
// empty value stands for the default.
func OptionsFor(config, stateDir string) (Options, error) {
	var o Options
	o.Define(flag.NewFlagSet("", flag.ContinueOnError))
	o.Config, o.StateDir = config, cmp.Or(stateDir, o.StateDir)
	return o, o.resolve()
}

// FlagError is a flag whose value cannot be used.
type FlagError struct{ text string }

func (e *FlagError) Error() string { return e.text }

// Complete checks the flags, with *FlagError, and makes the state directory's path absolute.
func (o *Options) Complete() error {
	for _, f := range []struct{ name, addr string }{
		{"--grpc-addr", o.GRPCAddr}, {"--http-addr", o.HTTPAddr}, {"--github-addr", o.GitHubAddr},
	} {
		if err := Loopback(f.addr); err != nil {
			return &FlagError{fmt.Sprintf("%s %s: %v", f.name, f.addr, err)}
		}
	}
	switch {
	case o.StateDir == "":
		return &FlagError{"--state-dir is empty"}
	case o.BootTime < 0:
		return &FlagError{fmt.Sprintf("--boot-time %s is negative", o.BootTime)}
	}
	if err := o.resolve(); err != nil {
		return fmt.Errorf("--state-dir %s: %w", o.StateDir, err)
	}
	return nil
}

func (o *Options) resolve() error {
	dir, err := filepath.Abs(o.StateDir)
	if err == nil {
		o.StateDir = dir
	}
	return err
}

// Loopback refuses an address that other machines reach: dev has no TLS, and the stand-in
// trusts every caller.
func Loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("not an address; write one such as 127.0.0.1:7443")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("not a loopback address; this is for one machine only, `controld serve` is for more")
	}
	return nil
}

// GitHubDir is the state directory of the stand-in.
func (o *Options) GitHubDir() string { return filepath.Join(o.StateDir, "github") }

// tokenFile holds a token for the stand-in, which takes any.
func (o *Options) tokenFile() string { return filepath.Join(o.StateDir, "github-token") }

// webhookSecret is the secret file for a configuration that has job pools and names no secret.
func (o *Options) webhookSecret() string { return filepath.Join(o.StateDir, "webhook-secret") }

// Configuration is the result of the flags and the file. The file is read over dev's own
// defaults, and then dev puts its own values in place. The URL of GitHub is not known before
// the stand-in listens. Nothing is written. The rules are for the file, as it is read.
func (o *Options) Configuration(programs Programs, rules ...config.Rule) (*config.Config, error) {
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
		if err := c.Read(o.Config, data, rules...); err != nil {
			return nil, err
		}
	}
	c.Page = &config.Page{}
	c.GRPC = config.GRPC{Addr: o.GRPCAddr}
	c.HTTP.Addr = o.HTTPAddr
	c.Store.SQLite.Path = filepath.Join(o.StateDir, "remuda.db")
	c.Compute.Process.Directory = o.StateDir
	c.Compute.Process.Agentd = programs.Agentd
	c.Compute.Process.Runner = filepath.Join(o.StateDir, "runner")
	if o.BootTime > 0 {
		c.Compute.Process.BootDelay = o.BootTime
	}
	if delay := c.Compute.Process.BootDelay; delay >= c.Timeouts.Creation {
		return nil, &FlagError{fmt.Sprintf("--boot-time %s is not less than timeouts.creation (%s): no host would ever be ready", delay, c.Timeouts.Creation)}
	}
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
