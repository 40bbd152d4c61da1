package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// workerOptions are the fleet's options for the job queues of services, or nil if no service
// has its queue here.
func workerOptions(c *config.Config, store workqueue.Store) *workqueue.Options {
	o := &workqueue.Options{Store: store, Services: map[string]model.JobPolicy{}}
	for name, s := range c.Services {
		if s.OwnQueue() {
			o.Services[name] = model.JobPolicy{QueueTime: s.QueueTimeout, Requeue: s.Requeue}
		}
	}
	if len(o.Services) == 0 {
		return nil
	}
	return o
}

// workerTokens are where the tokens of workers come from.
func workerTokens(c *config.Config) server.WorkerTokens {
	tokens := server.WorkerTokens{}
	for name, s := range c.Services {
		if s.WorkerTokenFile != "" {
			tokens[name] = server.TokenFile(s.WorkerTokenFile)
		}
	}
	return tokens
}

// checkTokens reads the token files of services, at start and for config check. Later an
// error in a file is reported at each call. The warnings name services whose workers share a
// token and so cannot be distinguished.
func checkTokens(c *config.Config) (warnings []string, wrong []error) {
	have := map[lifecycle.Secret][]string{} // by token of workers, the services
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s := c.Services[name]
		for _, token := range readTokens(name, "worker_token_file", s.WorkerTokenFile, &wrong) {
			if !slices.Contains(have[token], name) {
				have[token] = append(have[token], name)
			}
		}
		readTokens(name, "nudge_token_file", s.NudgeTokenFile, &wrong)
	}
	for _, services := range have {
		if len(services) > 1 {
			warnings = append(warnings, fmt.Sprintf("services %s have a worker token in common: "+
				"any caller that shows it may submit, take and end the jobs of each of them; give each a token of its own", strings.Join(services, " and ")))
		}
	}
	slices.Sort(warnings)
	return slices.Compact(warnings), wrong
}

// readTokens reads a token file of a service; the path "" means that there is none.
func readTokens(service, key, path string, wrong *[]error) []lifecycle.Secret {
	if path == "" {
		return nil
	}
	tokens, err := server.TokenFile(path)()
	if err != nil {
		*wrong = append(*wrong, fmt.Errorf("services.%s.%s: %w", service, key, err))
	}
	return tokens
}
