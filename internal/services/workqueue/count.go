package workqueue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// maxCountedWorkers is how many workers of a service are counted: one page of rows of some hundred bytes each.
const maxCountedWorkers = 1000

// WorkerCount is how many workers a service has.
type WorkerCount struct {
	// Versions are in order.
	Versions []VersionCount
	// More: there are more workers, which were not counted.
	More bool
}

// VersionCount is how many workers have a version, as they reported it last.
type VersionCount struct {
	Version         string
	Online, Offline int
}

// Online is how many workers have a recent heartbeat.
func (c WorkerCount) Online() (n int) {
	for _, v := range c.Versions {
		n += v.Online
	}
	return n
}

// CountWorkers counts the workers of a service; nil: the service has no queue here.
func (q *Queue) CountWorkers(ctx context.Context, service string, now time.Time) (*WorkerCount, error) {
	if _, err := q.policy(service); err != nil {
		return nil, nil
	}
	page, err := q.Store.Workers(ctx, service, lifecycle.PageOf{Limit: maxCountedWorkers})
	if err != nil {
		return nil, fmt.Errorf("count workers of service %s: %w", service, err)
	}
	count := &WorkerCount{More: page.Next != ""}
	for _, w := range page.Items {
		i, found := slices.BinarySearchFunc(count.Versions, w.WorkerVersion, func(v VersionCount, version string) int { return cmp.Compare(v.Version, version) })
		if !found {
			count.Versions = slices.Insert(count.Versions, i, VersionCount{Version: w.WorkerVersion})
		}
		if w.Online(now) {
			count.Versions[i].Online++
		} else {
			count.Versions[i].Offline++
		}
	}
	return count, nil
}

// Backlog counts the jobs of services that have their jobs here. It is their services.Backlog.
type Backlog struct {
	Store Store
	// AtMost is how many jobs of each kind are counted.
	AtMost int
}

// Count returns how many jobs wait and run in the queue of a service.
func (b Backlog) Count(ctx context.Context, service string) (model.Backlog, error) {
	n, err := b.Store.CountWork(ctx, service, b.AtMost)
	if err != nil {
		return model.Backlog{}, fmt.Errorf("count the jobs of service %s: %w", service, err)
	}
	return model.Backlog{Queued: &n.Waiting, Busy: &n.Running, More: n.Waiting >= b.AtMost}, nil
}
