package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
func (s *Store) SeeOnce(ctx context.Context, kind, id string, until time.Time) error {
	what := "remember " + kind + " " + id
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return err
	}
	defer end()
	key := seenKey{kind, id}
	if before, ok := s.seen[key]; ok && s.Now().Before(before) {
		return fmt.Errorf("%s: %w", what, lifecycle.ErrExists)
	}
	s.seen[key] = until.Round(0).UTC()
	return nil
}
