package page

import (
	"context"
	"slices"
	"strings"
	"time"

	views "github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/recent"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// census is what the pages need of all live hosts. It is read once for all who look, and keeps little of each host.
type census struct {
	runs  []views.Run
	hosts []liveHost
	// marked are the hosts with a mark that the filter of hosts knows.
	marked []*remudav1.Instance
}

// liveHost is a host that has not ended.
type liveHost struct {
	id    string
	state remudav1.State
	since time.Time // when it was launched
}

// alive are the states of hosts that have not ended.
var alive = []remudav1.State{remudav1.State_STATE_CREATED, remudav1.State_STATE_CLAIMED, remudav1.State_STATE_RUNNING, remudav1.State_STATE_IDLE}

// marks are what a host may be beside its state, as the filter of hosts has them.
var marks = []string{"held", "retiring"}

// census reads all live hosts, at most once in ten seconds.
func (p *page) census(ctx context.Context) (*census, error) {
	question := recent.Question{Now: p.Now(), Young: 10 * time.Second, Old: time.Minute, Within: answerWithin}
	return p.censuses.Get(ctx, question, func(ctx context.Context) (*census, error) {
		var all []*remudav1.Instance
		for req := (&remudav1.ListInstancesRequest{States: alive, PageSize: 1000}); ; {
			resp, err := p.Fleet.ListInstances(ctx, req)
			if err != nil {
				return nil, err
			}
			all = append(all, resp.GetInstances()...)
			if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
				return censusOf(all, question.Now), nil
			}
		}
	})
}

func censusOf(all []*remudav1.Instance, now time.Time) *census {
	c := &census{runs: views.RunsOf(all, now)}
	for _, h := range all {
		c.hosts = append(c.hosts, liveHost{h.GetInstanceId(), h.GetState(), h.GetCreateTime().AsTime()})
		if slices.ContainsFunc(marks, func(mark string) bool { return views.Is(h, mark, now) }) {
			c.marked = append(c.marked, h)
		}
	}
	slices.SortFunc(c.hosts, func(a, b liveHost) int { return strings.Compare(a.id, b.id) })
	return c
}
