package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// ServiceOptions are the parts for services of runners. All are required; Scaler
// only where a service is scaled.
type ServiceOptions struct {
	Store  ServiceStore
	Scaler Services
	// Services are those of the configuration, by name.
	Services map[string]Service
}

// Service is a service of runners in the configuration.
type Service struct {
	Name string
	// Region, Cluster and ECSService say where it is. Without a cluster it is not
	// scaled: its runners are started by others.
	Region, Cluster, ECSService string
	Policy                      policy.ServicePolicy
	// Backlog counts its jobs; required where it is scaled. One that is not scaled is
	// counted by whoever asks.
	Backlog Backlog
	// Labels are those of its runners: a queued job of a webhook that they serve
	// is a reason to look at once.
	Labels []string
}

// Scaled reports whether the service goes from zero and back.
func (s Service) Scaled() bool { return s.Cluster != "" }

// ServiceStatus is a service, and what was last seen of it.
type ServiceStatus struct {
	Service
	Seen model.Service
	// Workers are those of its queue here, as they are now; nil: its jobs are
	// elsewhere.
	Workers *WorkerCount
}

// serviceDesk is what the use-cases of services share.
type serviceDesk struct {
	ServiceOptions
	labels map[string][]string // for policy.MatchPool
	nudges *nudges
}

func newServiceDesk(o ServiceOptions) (*serviceDesk, error) {
	d := &serviceDesk{ServiceOptions: o, labels: map[string][]string{}, nudges: newNudges()}
	for name, s := range o.Services {
		if s.Name != name {
			return nil, fmt.Errorf("services: %s is called %s", name, s.Name)
		}
		if !s.Scaled() {
			continue
		}
		if o.Store == nil || o.Scaler == nil || s.Backlog == nil {
			return nil, fmt.Errorf("services: store, scaler and a backlog are required, and %s has not all of them", name)
		}
		if len(s.Labels) > 0 {
			d.labels[name] = s.Labels
		}
	}
	return d, nil
}

// scaled are the names of the services that are scaled, in order.
func (f *Fleet) scaled() []string {
	if f.services == nil {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.services.Services)) {
		if f.services.Services[name].Scaled() {
			names = append(names, name)
		}
	}
	return names
}

// service is one of the configuration: lifecycle.ErrNotFound.
func (f *Fleet) service(name string) (Service, error) {
	if f.services != nil {
		if s, ok := f.services.Services[name]; ok {
			return s, nil
		}
	}
	return Service{}, fmt.Errorf("service %.63s: %w: the configuration has none of that name", name, lifecycle.ErrNotFound)
}

// Services pages through the services of the configuration, by name, as they
// were last looked at.
func (f *Fleet) Services(ctx context.Context, of lifecycle.PageOf) (lifecycle.Page[ServiceStatus], error) {
	var page lifecycle.Page[ServiceStatus]
	var names []string
	if f.services != nil {
		names = slices.Sorted(maps.Keys(f.services.Services))
	}
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
		status, err := f.serviceStatus(ctx, f.services.Services[name])
		if err != nil {
			return lifecycle.Page[ServiceStatus]{}, err
		}
		page.Items = append(page.Items, status)
	}
	return page, nil
}

// serviceStatus is a service as it was last looked at. Nobody looks at one that is
// not scaled: it is counted now. What is wrong with it alone is its reason.
func (f *Fleet) serviceStatus(ctx context.Context, s Service) (ServiceStatus, error) {
	status := ServiceStatus{Service: s}
	var err error
	if s.Scaled() {
		status.Seen, err = f.services.Store.Service(ctx, s.Name)
		if err != nil && !op.Transient(ctx, err) {
			status.Seen, err = model.Service{Name: s.Name, Reason: "it cannot be told of: " + oneLine(err)}, nil
		}
	} else {
		status.Seen = f.unscaled(ctx, s)
	}
	if err == nil {
		status.Workers, err = f.countWorkers(ctx, s.Name, time.Now())
	}
	if err != nil {
		return ServiceStatus{}, fmt.Errorf("read service %s: %w", s.Name, err)
	}
	return status, nil
}

// unscaled is a service that only has a queue, with as much of its count as is known.
func (f *Fleet) unscaled(ctx context.Context, s Service) model.Service {
	seen := model.Service{Name: s.Name, CheckedAt: time.Now(), Reason: "it is not scaled here: the configuration names no cluster"}
	if s.Backlog == nil {
		return seen
	}
	counted := f.countBacklog(ctx, s.Name, nudgedLimit)
	seen.Backlog = counted.Backlog
	if counted.err != nil {
		seen.Reason += "; its jobs cannot be counted: " + oneLine(counted.err)
	}
	return seen
}

// nudgePatience is how long a nudge tries on while something is away: its caller
// waits, and the next sweep looks in any case.
const nudgePatience = 5 * time.Second

// lookTries is how often a nudge looks anew, from the beginning, when somebody
// else has decided on the service meanwhile.
const lookTries = 3

// NudgeService looks at a service now and does what is to be done. It returns
// when ECS was told. ErrNotFound; ErrRefused for one that is not scaled.
func (f *Fleet) NudgeService(ctx context.Context, name string) (ServiceStatus, error) {
	s, err := f.service(name)
	if err != nil {
		return ServiceStatus{}, err
	}
	if !s.Scaled() {
		return ServiceStatus{}, fmt.Errorf("nudge service %s: %w: it is not scaled here, since the configuration names no cluster", name, lifecycle.ErrRefused)
	}
	for range lookTries {
		look := f.newServiceLook(name)
		if err := f.ops.Drive(ctx, look, nudgePatience); err != nil {
			return ServiceStatus{}, err
		}
		if err := look.failed[name]; err != nil {
			return ServiceStatus{}, err
		}
		if !look.overtaken {
			return f.serviceStatus(ctx, s)
		}
	}
	return ServiceStatus{}, &lifecycle.UnavailableError{
		What: "nudge service " + name, RetryAfter: time.Second, Err: errors.New("others look at it at the same time"),
	}
}
