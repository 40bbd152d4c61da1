package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/server/idtoken"
)

// issuerTimeout bounds a call to the issuer of ID tokens. Once an hour a workflow waits for that call.
const issuerTimeout = 10 * time.Second

// callers decides who may call. Workflows may call where a rule allows it.
func callers(c *config.Config, jobs fleet.JobStore, f *fleet.Fleet) (server.Callers, error) {
	who := server.Callers{Operators: c.Callers.Roles(), Rules: c.Rules(), Once: jobs.SeeOnce, Fork: f.Fork}
	if len(who.Rules) == 0 || c.Callers.Audience == "" {
		return who, nil
	}
	client, err := issuerClient(c.GitHub.CAFile)
	if err != nil {
		return who, err
	}
	who.Tokens, err = idtoken.New(idtoken.Options{Issuer: c.Callers.Issuer, Audience: c.Callers.Audience, Client: client})
	return who, err
}

// issuerClient trusts the certificate authority of a GitHub Enterprise Server, which is its own issuer.
func issuerClient(caFile string) (*http.Client, error) {
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
	return &http.Client{Transport: transport, Timeout: issuerTimeout}, nil
}
