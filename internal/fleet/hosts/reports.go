package hosts

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Reports reads what the agents of hosts report, by host key. A report is untrusted input.
// Reports and AllReports are the only ways to one, and return what may be believed of it.
func (hs *Hosts) Reports(ctx context.Context, hostKeys []string, now time.Time) (map[string]lifecycle.Report, error) {
	stored, err := hs.Store.Reports(ctx, hostKeys)
	if err != nil {
		return nil, fmt.Errorf("read reports: %w", err)
	}
	believed := make(map[string]lifecycle.Report, len(stored))
	for key, p := range stored {
		hs.believe(believed, key, p, now)
	}
	return believed, nil
}

// AllReports is Reports for every host that has one. The keys include hosts whose report has
// nothing that may be believed.
func (hs *Hosts) AllReports(ctx context.Context, now time.Time) (keys []string, believed map[string]lifecycle.Report, err error) {
	believed = map[string]lifecycle.Report{}
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Report], error) {
		return hs.Store.AllReports(ctx, page)
	}
	for p, err := range lifecycle.Pages(lifecycle.PageOf{Limit: 1000}, list) {
		if err != nil {
			return nil, nil, fmt.Errorf("list reports: %w", err)
		}
		keys = append(keys, p.HostKey)
		hs.believe(believed, p.HostKey, p, now)
	}
	return keys, believed, nil
}

// Machines lists every machine with the fleet's tag that is not gone.
func (hs *Hosts) Machines(ctx context.Context) ([]lifecycle.Machine, error) {
	var machines []lifecycle.Machine
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
		return hs.Compute.List(ctx, page)
	}
	for m, err := range lifecycle.Pages(lifecycle.PageOf{Limit: 1000}, list) {
		if err != nil {
			return nil, fmt.Errorf("list machines: %w", err)
		}
		machines = append(machines, m)
	}
	return machines, nil
}

// believe adds what may be believed of a report, and logs a malformed one, once until it is
// well-formed again: reports are read several times a second.
func (hs *Hosts) believe(believed map[string]lifecycle.Report, key string, p lifecycle.Report, now time.Time) {
	word, err := p.Believed(now)
	if word != nil {
		believed[key] = *word
	}
	if err == nil {
		hs.malformed.Delete(key)
		return
	}
	if _, told := hs.malformed.LoadOrStore(key, true); !told {
		hs.Log.Warn("malformed report; only its busy flag is used", logkey.Instance, key, logkey.Busy, p.Busy, logkey.Error, err)
	}
}

// deleteReport removes the report of a host that has ended.
func (hs *Hosts) deleteReport(ctx context.Context, hostKey string) error {
	if err := hs.Store.DeleteReport(ctx, hostKey); err != nil {
		return fmt.Errorf("delete report of %s: %w", hostKey, err)
	}
	hs.malformed.Delete(hostKey)
	return nil
}
