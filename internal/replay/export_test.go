package replay

import (
	"context"

	"github.com/remuda-ci/remuda/internal/history"
)

// PlayEachTurn is Play with every turn of every operation.
func PlayEachTurn(ctx context.Context, jobs []history.Job, p Policy, t Times) (*Outcome, error) {
	return play(ctx, jobs, p, t, patience{})
}
