package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// maxPEM is the largest PEM file that is read, in bytes. A key has 2 KiB, the certificate
// authorities of a whole system have 250 KiB.
const maxPEM = 1 << 20

// newGitHub makes the client of GitHub. It checks that there are credentials and that their
// files can be read, before the first call needs them.
func newGitHub(ctx context.Context, c config.GitHub, replicas func() int, log hclog.Logger) (*github.Client, error) {
	o, err := githubOptions(ctx, c, replicas, log)
	if err != nil {
		return nil, err
	}
	client, err := github.New(o)
	if err != nil {
		return nil, &configError{fmt.Errorf("github: %w", err)}
	}
	return client, nil
}

// newHub is newGitHub, without credentials for a fleet without hosts: nothing calls GitHub there.
func newHub(ctx context.Context, c *config.Config, replicas func() int, log hclog.Logger) (*github.Client, error) {
	if !c.WithoutHosts {
		return newGitHub(ctx, c.GitHub, replicas, log)
	}
	return github.New(github.Config{Replicas: replicas, URL: c.GitHub.URL, Token: noToken, Log: log.Named("github")})
}

// noToken is the token of a fleet without hosts.
func noToken(context.Context) (lifecycle.Secret, error) { return "", errNoHosts }

// githubOptions are what the client of GitHub is made with.
func githubOptions(ctx context.Context, c config.GitHub, replicas func() int, log hclog.Logger) (github.Config, error) {
	made := github.Config{
		Replicas: replicas, URL: c.URL, Organization: c.Scope == config.ScopeOrganization, RunnerGroup: c.RunnerGroup, Log: log.Named("github"),
	}
	var err error
	if made.Transport, err = githubTransport(c.CAFile); err != nil {
		return made, err
	}
	if made.Apps, err = githubApps(c.Apps); err != nil {
		return made, &configError{err}
	}
	if len(made.Apps) == 0 {
		if made.Token, err = githubToken(ctx, c); err != nil {
			return made, &configError{err}
		}
	}
	return made, nil
}

// githubTransport trusts the authorities of github.ca_file, if there is one, beside the system's.
func githubTransport(caFile string) (http.RoundTripper, error) {
	var authorities []byte
	if caFile != "" {
		var err error
		if authorities, err = readPEM(caFile); err != nil {
			return nil, &configError{fmt.Errorf("github.ca_file: %w", err)}
		}
	}
	transport, err := github.NewTransport(authorities)
	if err != nil {
		return nil, &configError{fmt.Errorf("github.ca_file: %s: %w", caFile, err)}
	}
	return transport, nil
}

func githubToken(ctx context.Context, c config.GitHub) (github.TokenSource, error) {
	token, key := github.TokenFile(c.TokenFile), "github.token_file"
	if c.TokenEnv != "" {
		token, key = github.StaticToken(lifecycle.Secret(os.Getenv(c.TokenEnv))), "github.token_env"
	}
	if _, err := token(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return token, nil
}

func githubApps(configured []config.GitHubApp) ([]github.App, error) {
	var apps []github.App
	for i, a := range configured {
		key, err := privateKey(a)
		if err != nil {
			return nil, fmt.Errorf("github.apps[%d].%w", i, err)
		}
		apps = append(apps, github.App{AppID: int64(a.AppID), ClientID: a.ClientID, PrivateKey: key})
	}
	return apps, nil
}

func privateKey(a config.GitHubApp) (lifecycle.Secret, error) {
	if a.PrivateKeyEnv != "" {
		text := os.Getenv(a.PrivateKeyEnv)
		if text == "" {
			return "", fmt.Errorf("private_key_env: the variable %s is empty; put the text of the PEM file in it", a.PrivateKeyEnv)
		}
		return lifecycle.Secret(text), nil
	}
	data, err := readPEM(a.PrivateKeyFile)
	if err != nil {
		return "", fmt.Errorf("private_key_file: %w", err)
	}
	return lifecycle.Secret(data), nil
}

// readPEM reads a small file.
func readPEM(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read PEM file: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPEM+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read PEM file: %w", err)
	case len(data) == 0:
		return nil, fmt.Errorf("read PEM file %s: %w", path, errors.New("it is empty"))
	case len(data) > maxPEM:
		return nil, fmt.Errorf("read PEM file %s: %w", path, errors.New("it is too large for one"))
	}
	return data, nil
}
