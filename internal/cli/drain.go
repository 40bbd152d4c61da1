package cli

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// DrainFlags say which hosts leave, beside those that are named.
type DrainFlags struct {
	// Pool has the hosts of a pool leave, and All those of the fleet. They are asked for, since a drain cannot be taken back.
	Pool   string
	All    bool
	Reason string
	// Yes asks no question.
	Yes bool
}

// requests are the calls to make, and what they are about.
func (f DrainFlags) requests(hosts []string) ([]*remudav1.DrainRequest, error) {
	given := 0
	for _, is := range []bool{len(hosts) > 0, f.Pool != "", f.All} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, failure.Misused("name hosts, or --pool, or --all")
	}
	if len(hosts) == 0 {
		return []*remudav1.DrainRequest{{Pool: f.Pool, All: f.All, Reason: f.Reason}}, nil
	}
	var requests []*remudav1.DrainRequest
	for _, id := range hosts {
		requests = append(requests, &remudav1.DrainRequest{InstanceId: id, Reason: f.Reason})
	}
	return requests, nil
}

// drained names what a request is about.
func drained(r *remudav1.DrainRequest) string {
	switch {
	case r.GetAll():
		return "all hosts"
	case r.GetPool() != "":
		return "the hosts of pool " + r.GetPool()
	}
	return "host " + r.GetInstanceId()
}

// Drain has hosts leave once they have no run. No job ends by it.
func (a *App) Drain(ctx context.Context, hosts []string, f DrainFlags) error {
	requests, err := f.requests(hosts)
	if err != nil {
		return err
	}
	if len(hosts) == 0 && !f.Yes {
		if err := a.confirm(ctx, "Drain "+drained(requests[0])+", which cannot be taken back"); err != nil {
			return err
		}
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	var sum remudav1.DrainResponse
	for _, req := range requests {
		resp, err := call(ctx, s, DefaultTimeout, "drain "+drained(req), s.fleet.Drain, req)
		switch {
		case err != nil && req.GetPool() != "":
			return aboutPool(err)
		case err != nil:
			return err
		}
		sum.DrainedCount += resp.GetDrainedCount()
		sum.RetiringCount += resp.GetRetiringCount()
	}
	if a.Output.ForPrograms() {
		return output.Message(a.Stdout, a.Output, &sum)
	}
	_, err = fmt.Fprintf(a.Stdout, "%d drained, %s leaving already; `remuda ps --state retiring` shows those that still serve a run.\n", sum.GetDrainedCount(), plural.Of(sum.GetRetiringCount(), "was", "were"))
	return failure.Of("write answer", err)
}
