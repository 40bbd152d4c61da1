package cli

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// mostDecisions is how many decisions a call has at most.
const mostDecisions = 10_000

// Plan says what the next scale-down would do with the fleet.
func (a *App) Plan(ctx context.Context) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		resp, err := call(ctx, s, DefaultTimeout, "plan the next scale-down", s.fleet.PlanScaleDown, &remudav1.PlanScaleDownRequest{RowLimit: mostDecisions})
		if err != nil {
			return failure.WithRemedy(err, failure.Conflict, "Add `scale_down: {}` to controld's configuration; docs/policies.md#scale-down has its keys.")
		}
		if a.Output.ForPrograms() {
			return output.Message(a.Stdout, a.Output, resp)
		}
		if n := resp.GetMoreDecisions(); n > 0 {
			fmt.Fprintf(a.Stderr, "%d more hosts are left out.\n", n)
		}
		return a.print(view.Decisions(resp.GetDecisions()), "The next scale-down has no host to judge.")
	})
}
