package cli

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// completeWithin bounds a completion: a person waits for it with a finger on the key.
const completeWithin = 2 * time.Second

// ContextNames are the names of the contexts, for completion: without an error.
func (a *App) ContextNames() []string {
	_, file, err := a.contextsFile()
	if err != nil {
		return nil
	}
	var names []string
	for _, c := range file.Contexts {
		names = append(names, c.Name+"\t"+c.Address)
	}
	return names
}

// PoolNames are the names of the pools, for completion.
func (a *App) PoolNames(ctx context.Context) []string {
	return a.complete(ctx, func(ctx context.Context, s *session) (names []string) {
		list, err := s.fleet.ListPools(ctx, &remudav1.ListPoolsRequest{PageSize: pageSize})
		if err != nil {
			return nil
		}
		for _, p := range list.GetPools() {
			names = append(names, p.GetName())
		}
		return names
	})
}

// HostNames are the ids of the hosts, for completion.
func (a *App) HostNames(ctx context.Context) []string {
	return a.complete(ctx, func(ctx context.Context, s *session) (names []string) {
		list, err := s.hosts(ctx, &remudav1.ListInstancesRequest{States: alive})
		if err != nil {
			return nil
		}
		for _, h := range (view.Filter{}).Apply(list, a.Now()) {
			names = append(names, h.GetInstanceId()+"\t"+view.State(h)+" "+h.GetRepository()+" "+h.GetRunId())
		}
		return names
	})
}

// complete asks controld for names, without an error. Nothing is asked with a token, which counts once.
func (a *App) complete(ctx context.Context, names func(context.Context, *session) []string) []string {
	s, err := a.open()
	if err != nil {
		return nil
	}
	defer s.close()
	if s.target.TokenFile != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	return names(ctx, s)
}
