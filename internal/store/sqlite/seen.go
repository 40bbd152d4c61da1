package sqlite

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// A row whose time is over counts no more, whether or not it has been cleared.
const see = `INSERT INTO seen (kind, id, expires_at) VALUES (?1, ?2, ?3)
	ON CONFLICT (kind, id) DO UPDATE SET expires_at = excluded.expires_at WHERE expires_at <= ?4`

// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
func (s *Store) SeeOnce(ctx context.Context, kind, id string, until time.Time) error {
	return s.change(ctx, "remember "+kind+" "+id, lifecycle.ErrExists, see, kind, id, db.Nanos(until), db.Nanos(s.db.Now()))
}
