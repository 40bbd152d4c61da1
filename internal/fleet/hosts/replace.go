package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// makeReplacement writes the request for a host in the place of an interrupted one. The id of
// the request is made from the host and its assignment, so there is only one, however often and
// by whichever replica this is done. The due sweep resumes it like any other request. If the
// run was released in between, the result is ErrConflict: the host has moved on.
func (hs *Hosts) makeReplacement(ctx context.Context, j *op.Recorder, r lifecycle.Record, now time.Time) error {
	q, err := hs.Store.Request(ctx, r.Repository, r.RunID, r.RequestID)
	if err != nil {
		return fmt.Errorf("read request %s: %w", r.RequestID, err)
	}
	if q.Released() {
		return fmt.Errorf("replace host %s: run %s was released: %w", r.InstanceID, r.RunID, lifecycle.ErrConflict)
	}
	n := q.Replacement(r, now)
	err = hs.Store.CreateRequest(ctx, n)
	switch {
	case errors.Is(err, lifecycle.ErrExists):
		return nil
	case err != nil:
		return fmt.Errorf("create request %s: %w", n.RequestID, err)
	}
	j.RecordEffect(op.RequestEvent(n, lifecycle.ActionReplace, lifecycle.Because(lifecycle.ReasonInterruption, "another host replaces %s, which EC2 interrupts", r.InstanceID), now))
	return nil
}
