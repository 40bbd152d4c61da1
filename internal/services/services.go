// Package services scales services of runners from zero and back. A service runs its runners in containers; a sweep
// compares its queue with what it runs, and a nudge checks one service at once.
//
// The rows are in package model, the job queues of services that have their jobs here in package workqueue, and the
// adapters beside them.
package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// Options are the configured services and the ports to scale them. Store and Scaler are required if a service is scaled.
type Options struct {
	Store  Store
	Scaler Scaler
	// Services are those of the configuration, by name.
	Services map[string]Service
}

// Service is a service of runners in the configuration.
type Service struct {
	Name string
	// Region, Cluster and ECSService say where it is. A service without a cluster is not scaled: its runners are
	// started by others.
	Region, Cluster, ECSService string
	Policy                      policy.ServicePolicy
	// Backlog counts its jobs; required if the service is scaled. The jobs of a service that is not scaled are counted
	// only when they are listed.
	Backlog Backlog
	// Stalled fails its jobs whose worker went silent; nil: they stay as they are, or are in a queue here, which does that.
	Stalled Stalled
	// Labels are those of its runners: a queued job of a webhook that they serve nudges the service.
	Labels []string
}

// Scaled reports whether the service is scaled from zero and back.
func (s Service) Scaled() bool { return s.Cluster != "" }

// Status is a configured service with what was last observed of it.
type Status struct {
	Service
	Seen model.Service
	// Workers counts the workers of its job queue now; nil: its jobs are elsewhere.
	Workers *workqueue.WorkerCount
}

// Env is what services share with the fleet that they belong to. All fields are required.
type Env struct {
	Driver *op.Driver
	Log    hclog.Logger
	// MayEnd returns a *fleethold.Error while nothing may be ended, or why that is unknown.
	MayEnd func(ctx context.Context, now time.Time) error
	// Sweeping reports whether this replica holds the lease of the sweeps. Lease is how long the lease lasts.
	Sweeping func() bool
	Lease    time.Duration
	// Interval is how often services are checked.
	Interval time.Duration
	// Swept is called at the end of each sweep, for metrics.
	Swept func(sweep string, d time.Duration, err error)
	// Queue has the jobs of the services that have a queue here.
	Queue *workqueue.Queue
}

// Services scales the configured services. It is safe for concurrent use.
type Services struct {
	Options
	env    Env
	labels map[string]policy.PoolLabels // for policy.MatchPool
	nudges *nudges
	// notFailed are the services whose stalled jobs could not be failed at the last look.
	notFailed stalledErrors
}

// New checks the options and returns the services.
func New(o Options, env Env) (*Services, error) {
	s := &Services{Options: o, env: env, labels: map[string]policy.PoolLabels{}, nudges: newNudges()}
	for name, service := range o.Services {
		if service.Name != name {
			return nil, fmt.Errorf("services: %s is called %s", name, service.Name)
		}
		if !service.Scaled() {
			continue
		}
		if o.Store == nil || o.Scaler == nil || service.Backlog == nil {
			return nil, fmt.Errorf("services: store, scaler and a backlog are required, and %s has not all of them", name)
		}
		if len(service.Labels) > 0 {
			// Runners of a service register by themselves, mostly with the default labels.
			s.labels[name] = policy.PoolLabels{Own: service.Labels, Default: true}
		}
	}
	return s, nil
}

// scaled returns the names of the services that are scaled, in order.
func (s *Services) scaled() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		if s.Services[name].Scaled() {
			names = append(names, name)
		}
	}
	return names
}

// service returns a configured service, or lifecycle.ErrNotFound.
func (s *Services) service(name string) (Service, error) {
	if service, ok := s.Services[name]; ok {
		return service, nil
	}
	return Service{}, fmt.Errorf("service %.63s: %w: the configuration has none of that name", name, lifecycle.ErrNotFound)
}

// List pages through the configured services, by name, with what was last observed of each.
func (s *Services) List(ctx context.Context, of lifecycle.PageOf) (lifecycle.Page[Status], error) {
	var page lifecycle.Page[Status]
	names := slices.Sorted(maps.Keys(s.Services))
	if of.After != "" {
		i, found := slices.BinarySearch(names, of.After)
		if !found {
			return page, fmt.Errorf("list services: %w", lifecycle.ErrPageToken)
		}
		names = names[i+1:]
	}
	if size := of.Size(); len(names) > size {
		names = names[:size]
		page.Next = names[size-1]
	}
	for _, name := range names {
		status, err := s.status(ctx, s.Services[name])
		if err != nil {
			return lifecycle.Page[Status]{}, err
		}
		page.Items = append(page.Items, status)
	}
	return page, nil
}

// status is a service as it was last observed. The sweep skips services that are not scaled, so the jobs of such a
// service are counted now. An error on this service alone becomes its reason.
func (s *Services) status(ctx context.Context, service Service) (Status, error) {
	status := Status{Service: service}
	var err error
	if service.Scaled() {
		status.Seen, err = s.Store.Service(ctx, service.Name)
		if err != nil && !op.Transient(ctx, err) {
			status.Seen, err = model.Service{Name: service.Name, Reason: "its state cannot be read: " + op.OneLine(err)}, nil
		}
	} else {
		status.Seen = s.unscaled(ctx, service)
	}
	if err == nil {
		status.Workers, err = s.env.Queue.CountWorkers(ctx, service.Name, time.Now())
	}
	if err != nil {
		return Status{}, fmt.Errorf("read service %s: %w", service.Name, err)
	}
	return status, nil
}

// unscaled is a service that only has a queue, with its counts as far as they are known.
func (s *Services) unscaled(ctx context.Context, service Service) model.Service {
	seen := model.Service{Name: service.Name, CheckedAt: time.Now(), Reason: "it is not scaled here: the configuration names no cluster"}
	if service.Backlog == nil {
		return seen
	}
	count := s.countBacklog(ctx, service.Name, nudgedCountTimeout)
	seen.Backlog = count.Backlog
	if count.err != nil {
		seen.Reason += "; its jobs cannot be counted: " + op.OneLine(count.err)
	}
	return seen
}

// nudgePatience is how long a nudge retries while a dependency is unavailable: its caller waits, and the next sweep
// checks the service in any case.
const nudgePatience = 5 * time.Second

// nudgeTries is how often a nudge starts again when another replica has decided on the service since it read the row.
const nudgeTries = 3

// Nudge checks a service now and scales it if necessary. It returns after the call to ECS. The error is ErrNotFound, or
// ErrRefused for a service that is not scaled.
func (s *Services) Nudge(ctx context.Context, name string) (Status, error) {
	service, err := s.service(name)
	if err != nil {
		return Status{}, err
	}
	if !service.Scaled() {
		return Status{}, fmt.Errorf("nudge service %s: %w: it is not scaled here, since the configuration names no cluster", name, lifecycle.ErrRefused)
	}
	for range nudgeTries {
		check := s.newNudgedSweep(name)
		if err := s.env.Driver.Drive(ctx, check, nudgePatience); err != nil {
			return Status{}, err
		}
		if err := check.failed[name]; err != nil {
			return Status{}, err
		}
		if !check.overtaken {
			return s.status(ctx, service)
		}
	}
	return Status{}, &lifecycle.UnavailableError{
		What: "nudge service " + name, RetryAfter: time.Second, Err: errors.New("others look at it at the same time"),
	}
}

// Scaler is where the runners of services are containers. It knows services by their names in the configuration.
type Scaler interface {
	// Describe returns an observation of each of the services. An error on one of them is in its own observation and
	// does not hide the others. The error of a service that does not exist is lifecycle.ErrNotFound.
	Describe(ctx context.Context, services []string) map[string]model.Observation
	// SetDesired makes a service run that many runners. The caller cannot choose which of them end when the number
	// becomes smaller, so it asks for a smaller number only when no runner has a job.
	SetDesired(ctx context.Context, service string, desired int) error
}

// Backlog counts the jobs of a service.
type Backlog interface {
	// Count returns how many jobs wait and how many have a runner. A number that is unknown is nil, and the error says
	// why. Count returns when ctx ends.
	Count(ctx context.Context, service string) (model.Backlog, error)
}

// Stalled are the jobs of a service whose worker went silent, in a table that is not Remuda's.
type Stalled interface {
	// FailStalled marks some of them as failed and returns their names. With dry it changes nothing and returns those
	// that it would mark. It returns when ctx ends.
	FailStalled(ctx context.Context, service string, now time.Time, dry bool) ([]string, error)
}

// Store keeps what was last observed of services, and the decisions that followed. Its errors are those of fleet.Store.
type Store interface {
	// Service reads one row, consistently. A row that was never written has only its name, and version 0.
	Service(ctx context.Context, name string) (model.Service, error)
	// UpdateService replaces the row if its stored version is s.Version (0: there is no row), and returns it as stored,
	// with the next version. Otherwise the error is lifecycle.ErrConflict.
	UpdateService(ctx context.Context, s model.Service) (model.Service, error)
}
