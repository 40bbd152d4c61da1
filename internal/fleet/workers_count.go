package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// countedWorkers is how many workers of a service are counted at most: one page of
// rows of some hundred bytes each.
const countedWorkers = 1000

// WorkerCount is how many workers a service has.
type WorkerCount struct {
	// Versions are in order.
	Versions []VersionCount
	// More: there are more than those, and it was counted no further.
	More bool
}

// VersionCount is how many workers have a version, as they told it last.
type VersionCount struct {
	Version         string
	Online, Offline int
}

// Online is how many workers were heard of lately.
func (c WorkerCount) Online() (n int) {
	for _, v := range c.Versions {
		n += v.Online
	}
	return n
}

// countWorkers counts the workers of a service; nil: it has no queue here.
func (f *Fleet) countWorkers(ctx context.Context, service string, now time.Time) (*WorkerCount, error) {
	if _, err := f.workService(service); err != nil {
		return nil, nil
	}
	page, err := f.workers.Store.Workers(ctx, service, lifecycle.PageOf{Limit: countedWorkers})
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
