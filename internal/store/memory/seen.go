package memory

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
func (s *Store) SeeOnce(ctx context.Context, kind, id string, until time.Time) error {
	return s.write(ctx, "remember "+kind+" "+id, func() error {
		key := seenKey{kind, id}
		if before, ok := s.seen[key]; ok && s.Now().Before(before) {
			return lifecycle.ErrExists
		}
		s.seen[key] = until.Round(0).UTC()
		return nil
	})
}
