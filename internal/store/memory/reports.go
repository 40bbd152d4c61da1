package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/token"
)

const reportsIndex = "reports"

// Reports reads the reports of the hosts that have one, by host key.
func (s *Store) Reports(ctx context.Context, hostKeys []string) (map[string]lifecycle.Report, error) {
	return read(ctx, s, "read reports", func() (map[string]lifecycle.Report, error) {
		found := make(map[string]lifecycle.Report, len(hostKeys))
		for _, key := range hostKeys {
			if p, ok := s.reports[key]; ok {
				found[key] = p
			}
		}
		return found, nil
	})
}

// AllReports lists every report, in order of host key.
func (s *Store) AllReports(ctx context.Context, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Report], error) {
	after, err := token.Parse(reportsIndex, of.After, 1)
	if err != nil {
		return lifecycle.Page[lifecycle.Report]{}, err
	}
	return read(ctx, s, "list reports", func() (page lifecycle.Page[lifecycle.Report], _ error) {
		for _, key := range slices.Sorted(maps.Keys(s.reports)) {
			if after != nil && key <= after[0] {
				continue
			}
			if len(page.Items) == of.Size() {
				page.Next = token.New(reportsIndex, page.Items[len(page.Items)-1].HostKey)
				break
			}
			page.Items = append(page.Items, s.reports[key])
		}
		return page, nil
	})
}

// DeleteReport removes a report; none is no error.
func (s *Store) DeleteReport(ctx context.Context, hostKey string) error {
	return s.write(ctx, "delete report of "+hostKey, func() error {
		delete(s.reports, hostKey)
		return nil
	})
}

// HostView is the store as one host's agent may see it: its own two rows.
type HostView struct {
	store   *Store
	hostKey string
}

// ForHost returns the view of the host's agent.
func (s *Store) ForHost(hostKey string) *HostView { return &HostView{store: s, hostKey: hostKey} }

// Record reads the host's record, with the store's time: ErrNotFound. Every read is consistent.
func (v *HostView) Record(ctx context.Context, _ bool) (lifecycle.Record, time.Time, error) {
	r, err := v.store.Instance(ctx, v.hostKey)
	return r, v.store.Now(), err
}

// PutReport replaces the host's report, and refuses one of another host.
func (v *HostView) PutReport(ctx context.Context, p lifecycle.Report) error {
	what := "write report of " + v.hostKey
	if p.HostKey != "" && p.HostKey != v.hostKey {
		return fmt.Errorf("%s: it names host %s", what, p.HostKey)
	}
	return v.store.write(ctx, what, func() error {
		p.HostKey = v.hostKey
		v.store.reports[v.hostKey] = store.NormalizeReport(p)
		return nil
	})
}
