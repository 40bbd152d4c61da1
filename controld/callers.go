package main

import (
	"net/http"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
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
	transport, err := githubTransport(c.GitHub.CAFile) // a GitHub Enterprise Server is its own issuer
	if err != nil {
		return who, err
	}
	client := &http.Client{Transport: transport, Timeout: issuerTimeout}
	who.Tokens, err = idtoken.New(idtoken.Options{Issuer: c.Callers.Issuer, Audience: c.Callers.Audience, Client: client})
	return who, err
}
