package cli

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/cli/output"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Pause has a pool give out no host and launch none.
func (a *App) Pause(ctx context.Context, pool, reason string) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	resp, err := call(ctx, s, DefaultTimeout, "pause pool "+pool, s.fleet.PausePool, &remudav1.PausePoolRequest{Pool: pool, Reason: reason})
	if err != nil {
		return aboutPool(err)
	}
	if a.Output.ForPrograms() {
		return output.Message(a.Stdout, a.Output, resp)
	}
	_, err = fmt.Fprintf(a.Stdout, "Pool %s is paused: its hosts serve their runs, and no run gets another. `remuda resume %s` ends the pause.\n", pool, pool)
	return err
}

// Resume takes the pause of a pool away.
func (a *App) Resume(ctx context.Context, pool, reason string) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	resp, err := call(ctx, s, DefaultTimeout, "resume pool "+pool, s.fleet.ResumePool, &remudav1.ResumePoolRequest{Pool: pool, Reason: reason})
	if err != nil {
		return aboutPool(err)
	}
	if a.Output.ForPrograms() {
		return output.Message(a.Stdout, a.Output, resp)
	}
	_, err = fmt.Fprintf(a.Stdout, "Pool %s gives out hosts.\n", pool)
	return err
}
