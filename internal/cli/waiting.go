package cli

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Waiting shows what waits for hosts, and why.
func (a *App) Waiting(ctx context.Context, pool string) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		resp, err := call(ctx, s, DefaultTimeout, "list what waits", s.fleet.ListWaiting, &remudav1.ListWaitingRequest{Pool: pool, RowLimit: pageSize})
		if err != nil {
			return aboutPool(err)
		}
		if a.Output.ForPrograms() {
			return output.Message(a.Stdout, a.Output, resp)
		}
		if resp.GetMore() {
			fmt.Fprintln(a.Stderr, "These wait longest; others wait too.")
		}
		return a.print(view.Waits(resp.GetWaits(), a.Now(), a.wide()), "Nothing waits for hosts.")
	})
}
