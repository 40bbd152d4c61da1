package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

const putReport = `INSERT INTO reports (host_key, doc) VALUES (?1, ?2)
	ON CONFLICT (host_key) DO UPDATE SET doc = excluded.doc`

// HostView is the store as one host's agent may see it: its own two rows.
type HostView struct {
	store   *Store
	hostKey string
}

// ForHost returns the view of the host's agent.
func (s *Store) ForHost(hostKey string) *HostView { return &HostView{store: s, hostKey: hostKey} }

// Record reads the host's record, with the store's time, which is this
// machine's: ErrNotFound. Every read is consistent.
func (v *HostView) Record(ctx context.Context, _ bool) (lifecycle.Record, time.Time, error) {
	r, err := v.store.Instance(ctx, v.hostKey)
	return r, v.store.db.Now(), err
}

// PutReport replaces the host's report, and refuses one of another host.
func (v *HostView) PutReport(ctx context.Context, p lifecycle.Report) error {
	what := "write report of " + v.hostKey
	if p.HostKey != "" && p.HostKey != v.hostKey {
		return fmt.Errorf("%s: it names host %s", what, p.HostKey)
	}
	p.HostKey = v.hostKey
	doc, err := json.Marshal(store.NormalizeReport(p))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return v.store.db.Write(ctx, what, func(c *db.Conn) error {
		_, err := c.Exec(putReport, v.hostKey, string(doc))
		return err
	})
}
