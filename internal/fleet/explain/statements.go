package explain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// statedHosts is how many hosts of a run are asked for their statements at most: the history of each host is read for them.
const statedHosts = 20

// Statements are the events with the signed statements of resets, oldest first, that belong to an explanation: those in its own history, and
// of each host that its history has in a run the one before that run and the one after it. A workflow, whose own run of is, gets none that names
// a run of another repository.
func (ex *Explainer) Statements(ctx context.Context, e Explanation, of OfRun, now time.Time) ([]lifecycle.Event, error) {
	stated := slices.DeleteFunc(slices.Clone(e.Events), func(event lifecycle.Event) bool { return event.Statement == "" })
	hosts := hostsIn(e.Events)
	for _, host := range hosts[:min(len(hosts), statedHosts)] {
		h, err := ex.Store.EventsOfInstance(ctx, host.id, now.Add(-24*time.Hour), time.Time{}, explainEvents)
		if err != nil {
			return nil, fmt.Errorf("list events of instance %s: %w", host.id, err)
		}
		for _, event := range h.Events {
			if event.Statement != "" && event.Assignment >= host.first-1 && event.Assignment <= host.last && !slices.Contains(stated, event) {
				stated = append(stated, event)
			}
		}
	}
	stated = slices.DeleteFunc(stated, func(event lifecycle.Event) bool { return of.RunID != "" && !about(event, of.Repository) })
	slices.SortStableFunc(stated, byTime)
	return stated, nil
}

// about reports whether the statement of an event names no run, or one of the repository.
func about(e lifecycle.Event, repository string) bool {
	r, err := statement.Open(e.Statement, e.AgentKey)
	of, _ := r.Before()
	return err == nil && (r.RunBefore == "" || of == lifecycle.Canonical(repository))
}

// hostOf is a host in a history of runs, with its first and last assignment there.
type hostOf struct {
	id          string
	first, last int64
}

// hostsIn are the hosts that a history has in a run, in the order in which they came.
func hostsIn(history []lifecycle.Event) []hostOf {
	var hosts []hostOf
	for _, e := range history {
		if e.InstanceID == "" || e.RunID == "" || e.Assignment == 0 {
			continue
		}
		i := slices.IndexFunc(hosts, func(h hostOf) bool { return h.id == e.InstanceID })
		if i < 0 {
			hosts = append(hosts, hostOf{e.InstanceID, e.Assignment, e.Assignment})
			continue
		}
		hosts[i].first, hosts[i].last = min(hosts[i].first, e.Assignment), max(hosts[i].last, e.Assignment)
	}
	return hosts
}
