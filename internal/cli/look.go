package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/subject"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// HostsFlags say which hosts are shown.
type HostsFlags struct {
	// All shows the hosts too that ended in the last 24 hours.
	All                   bool
	Pool, Repository, Run string
	States                []string
}

// Hosts shows the hosts.
func (a *App) Hosts(ctx context.Context, f HostsFlags) error {
	filter, err := f.filter()
	if err != nil {
		return err
	}
	// The run and the repository of a host of a job pool are those of its job, which the filters of the call do not know.
	req := &remudav1.ListInstancesRequest{States: alive, Pool: filter.Pool}
	if f.All || slices.Contains(f.States, "ended") {
		req.States = append(slices.Clone(alive), remudav1.State_STATE_TERMINATED)
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		list, err := s.hosts(ctx, req)
		if err != nil {
			return err
		}
		if err := s.mayBeEmpty(ctx, filter.Pool, len(list)); err != nil {
			return err
		}
		list = filter.Apply(list, a.Now())
		if a.Output.ForPrograms() {
			return output.Message(a.Stdout, a.Output, &remudav1.ListInstancesResponse{Instances: list})
		}
		return a.print(view.Hosts(list, a.Now(), a.wide()), f.nothing())
	})
}

func (f HostsFlags) nothing() string {
	if f.All {
		return "There are no such hosts."
	}
	return "There are no such hosts; --all shows those that ended in the last 24 hours too."
}

func (f HostsFlags) filter() (view.Filter, error) {
	filter := view.Filter{Pool: f.Pool, Repository: f.Repository, States: f.States}
	for _, state := range f.States {
		if !slices.Contains(view.States, state) {
			return filter, failure.Misused("--state: %q is not a state: write some of %s", state, strings.Join(view.States, ", "))
		}
	}
	if f.Run == "" {
		return filter, nil
	}
	run, err := runFlag(f.Run)
	if err != nil {
		return filter, err
	}
	filter.RunID = run.RunID
	if run.Repository != "" {
		filter.Repository = run.Repository
	}
	return filter, nil
}

// runFlag reads the flag --run.
func runFlag(name string) (subject.Subject, error) {
	run, err := subject.Parse([]string{name})
	if err != nil || run.RunID == "" {
		return run, failure.Misused("--run: %q is not a run", name)
	}
	return run, nil
}

// runList is what `runs` prints for programs.
type runList struct {
	Runs []view.Run `json:"runs"`
}

// Runs shows the runs that have hosts.
func (a *App) Runs(ctx context.Context, f HostsFlags) error {
	filter, err := f.filter()
	if err != nil {
		return err
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		list, err := s.hosts(ctx, &remudav1.ListInstancesRequest{States: alive, Pool: filter.Pool})
		if err != nil {
			return err
		}
		if err := s.mayBeEmpty(ctx, filter.Pool, len(list)); err != nil {
			return err
		}
		runs := view.RunsOf(filter.Apply(list, a.Now()), a.Now())
		if a.Output.ForPrograms() {
			return output.Value(a.Stdout, a.Output, runList{append([]view.Run{}, runs...)})
		}
		return a.print(view.Runs(runs, a.Now(), a.wide()), "No run has a host; `remuda why RUN` explains one that waits for its first.")
	})
}

// Pools shows the pools.
func (a *App) Pools(ctx context.Context) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		pools, err := s.pools(ctx)
		if err != nil {
			return err
		}
		if a.Output.ForPrograms() {
			return output.Message(a.Stdout, a.Output, &remudav1.ListPoolsResponse{Pools: pools})
		}
		return a.print(view.Pools(pools, a.Now(), a.wide()), "No pool is configured.")
	})
}

// Services shows the services of runners on ECS.
func (a *App) Services(ctx context.Context) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		var services []*remudav1.Service
		for req := (&remudav1.ListServicesRequest{PageSize: pageSize}); ; {
			resp, err := call(ctx, s, DefaultTimeout, "list services", s.fleet.ListServices, req)
			if err != nil {
				return err
			}
			services = append(services, resp.GetServices()...)
			if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
				break
			}
		}
		if a.Output.ForPrograms() {
			return output.Message(a.Stdout, a.Output, &remudav1.ListServicesResponse{Services: services})
		}
		return a.print(view.Services(services, a.Now(), a.wide()), "No service is configured.")
	})
}
