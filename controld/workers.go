package main

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/server"
)

// workerOptions are the parts of the fleet for the queues of services; nil: no
// service has its queue here.
func workerOptions(c *config.Config, store fleet.WorkerStore) *fleet.WorkerOptions {
	o := &fleet.WorkerOptions{Store: store, Services: map[string]lifecycle.WorkPolicy{}}
	for name, s := range c.Services {
		if s.OwnQueue() {
			o.Services[name] = lifecycle.WorkPolicy{QueueTime: s.QueueTimeout, Requeue: s.Requeue}
		}
	}
	if len(o.Services) == 0 {
		return nil
	}
	return o
}

// workerTokens are where the tokens of workers come from. A file that cannot be
// read now is told at start; later it is told at each call.
func workerTokens(c *config.Config) (server.WorkerTokens, error) {
	tokens := server.WorkerTokens{}
	for name, s := range c.Services {
		if s.WorkerTokenFile == "" {
			continue
		}
		tokens[name] = server.TokenFile(s.WorkerTokenFile)
		if _, err := tokens[name](); err != nil {
			return nil, &configError{fmt.Errorf("services.%s.worker_token_file: %w", name, err)}
		}
	}
	return tokens, nil
}
