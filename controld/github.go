package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/tracing"
)

// newHub makes the client of GitHub. A fleet without hosts has one without credentials, since nothing calls GitHub there.
func newHub(c *config.Config, in *inputs.Inputs, replicas func() int, log hclog.Logger) (*github.Client, error) {
	client, err := github.New(githubOptions(c, in, replicas, log))
	if err != nil {
		return nil, &configError{fmt.Errorf("github: %w", err)}
	}
	return client, nil
}

// noToken is the token of a fleet without hosts.
func noToken(context.Context) (lifecycle.Secret, error) { return "", errNoHosts }

// githubOptions are what the client of GitHub is made with.
func githubOptions(c *config.Config, in *inputs.Inputs, replicas func() int, log hclog.Logger) github.Config {
	if c.WithoutHosts {
		return github.Config{Replicas: replicas, URL: c.GitHub.URL, Token: noToken, Log: log.Named("github")}
	}
	return github.Config{
		Replicas: replicas, URL: c.GitHub.URL, Organization: c.GitHub.Scope == config.ScopeOrganization, RunnerGroup: c.GitHub.RunnerGroup,
		Transport: tracing.Transport(in.Transport), Apps: in.Apps, Token: in.Token, Log: log.Named("github"),
	}
}
