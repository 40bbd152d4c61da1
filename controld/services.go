package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	ecsapi "github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/instrument"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/ecs"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/postgrest"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
	"github.com/remuda-ci/remuda/internal/web"
)

// credentialsTimeout bounds the search for AWS credentials at start. Each source answers
// within a second or two.
const credentialsTimeout = 20 * time.Second

// serviceOptions are the fleet's options for runner services, or nil if there are none.
func (d *daemon) serviceOptions(ctx context.Context, c *config.Config) (*services.Options, error) {
	if len(c.Services) == 0 {
		return nil, nil
	}
	o := &services.Options{Store: d.records(), Services: map[string]services.Service{}}
	scaled := false
	for name, s := range c.Services {
		backlog, stalled := d.backlog(s, c.StalledJobs(name))
		o.Services[name] = services.Service{
			Name: name, Region: c.ServiceRegion(name), Cluster: s.Cluster, ECSService: s.ECSService, Labels: s.Labels,
			Policy:  policy.ServicePolicy{Maximum: s.Maximum, BacklogPerRunner: s.BacklogPerRunner, IdleChecks: s.IdleChecks},
			Backlog: backlog, Stalled: stalled,
		}
		scaled = scaled || s.Scaled()
	}
	if !scaled {
		return o, nil
	}
	scaler, err := newScaler(ctx, c)
	if err != nil {
		return nil, err
	}
	o.Scaler = instrument.Scaler{Scaler: scaler, Calls: d.calls("services")}
	return o, nil
}

// backlog counts the jobs of a service where they are, and fails those whose worker went silent in a table elsewhere.
func (d *daemon) backlog(s config.Service, silent *config.Stalled) (services.Backlog, services.Stalled) {
	p := s.Queue.PostgREST
	if p == nil {
		return workqueue.Backlog{Store: d.records(), AtMost: s.CountedJobs()}, nil
	}
	q := postgrest.New(postgrest.Options{
		URL: p.URL, Queued: p.Queued, Busy: p.Busy, TokenFile: p.TokenFile, Stalled: (*postgrest.Stalled)(silent),
	})
	backlog := instrument.Backlog{Backlog: q, Calls: d.calls("backlog")}
	if silent == nil {
		return backlog, nil
	}
	return backlog, instrument.Stalled{Stalled: q, Calls: d.calls("backlog")}
}

// newScaler is the adapter for services on ECS, with a client for each of their regions. It
// checks that there are credentials, since nothing can be scaled without them.
func newScaler(ctx context.Context, c *config.Config) (services.Scaler, error) {
	places := ecsPlaces(c)
	home := ""
	for _, p := range places {
		home = cmp.Or(home, p.Region)
	}
	cfg, err := aws.Load(ctx, aws.Options{Region: home, Program: "remuda-controld"})
	if err != nil {
		return nil, &configError{fmt.Errorf("services: %w", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, &configError{fmt.Errorf("services: they are scaled on ECS, for which AWS credentials are needed, with an aws section or without: "+
			"give an instance profile, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; or leave out cluster and ecs_service: %w", err)}
	}
	clients := map[string]*ecsapi.Client{}
	for name, p := range places {
		p.Region = cmp.Or(p.Region, cfg.Region)
		places[name] = p
		if clients[p.Region] == nil {
			in := cfg.Copy()
			in.Region = p.Region
			clients[p.Region] = ecsapi.NewFromConfig(in)
		}
	}
	return ecs.New(places, clients)
}

// ecsPlaces are where the scaled services of a configuration are. An empty region is the one that the SDK finds.
func ecsPlaces(c *config.Config) map[string]ecs.Place {
	places := map[string]ecs.Place{}
	for name, s := range c.Services {
		if s.Scaled() {
			places[name] = ecs.Place{Region: c.ServiceRegion(name), Cluster: s.Cluster, Service: s.ECSService}
		}
	}
	return places
}

// scaleTokens are the tokens that POST /api/scale accepts, by service: those for nudges and
// those of the workers, which may nudge too.
func scaleTokens(c *config.Config) server.WorkerTokens {
	tokens := server.WorkerTokens{}
	for name, s := range c.Services {
		if !s.Scaled() {
			continue
		}
		var sources []server.TokenSource
		for _, path := range []string{s.NudgeTokenFile, s.WorkerTokenFile} {
			if path != "" {
				sources = append(sources, server.TokenFile(path))
			}
		}
		if len(sources) > 0 {
			tokens[name] = anyOf(sources)
		}
	}
	return tokens
}

// anyOf returns the tokens of all sources. A source that fails does not hide the others.
func anyOf(sources []server.TokenSource) server.TokenSource {
	return func() (all []lifecycle.Secret, err error) {
		for _, source := range sources {
			tokens, wrong := source()
			if wrong != nil {
				err = wrong
			}
			all = append(all, tokens...)
		}
		return all, err
	}
}

// scale is the handler of POST /api/scale, or nil if no service has a token for it.
func (d *daemon) scale(c *config.Config) *web.Scale {
	tokens := scaleTokens(c)
	if len(tokens) == 0 {
		return nil
	}
	return &web.Scale{Services: tokens.Services, Nudge: d.fleet.NudgeSoon}
}

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
