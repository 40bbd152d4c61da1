package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// DropFlags say whose cache is dropped, and why.
type DropFlags struct {
	Pool, Repository, Reason string
}

// DropCache has the hosts of a pool delete a cache.
func (a *App) DropCache(ctx context.Context, name string, f DropFlags) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	req := &remudav1.DropCacheRequest{Pool: f.Pool, Name: name, Repository: f.Repository, Reason: f.Reason}
	resp, err := call(ctx, s, DefaultTimeout, "drop cache "+name, s.fleet.DropCache, req)
	if err != nil {
		return err
	}
	if a.Output.ForPrograms() {
		return output.Message(a.Stdout, a.Output, resp)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s.\n", droppedOn(name, f.Repository, resp))
	return err
}

// droppedOn says how many hosts delete a cache.
func droppedOn(name, of string, resp *remudav1.DropCacheResponse) string {
	hosts, leaving := resp.GetHostCount(), resp.GetLeavingCount()
	var parts []string
	if hosts > 0 {
		parts = append(parts, fmt.Sprintf("%s the cache %s of %s before the next run", plural.Of(hosts, "host deletes", "hosts delete"), name, of))
	}
	if leaving > 0 {
		parts = append(parts, fmt.Sprintf("%s, since the next job would see it", plural.Of(leaving, "host leaves", "hosts leave")))
	}
	if len(parts) == 0 {
		return fmt.Sprintf("No host has the cache %s of %s", name, of)
	}
	return strings.Join(append(parts, "a run that has a host now keeps its view"), "; ")
}
